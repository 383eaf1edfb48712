# SPDX-License-Identifier: GPL-2.0-or-later
"""Wrongs about several fabrics on one host."""

from wrongs import Wrong

FABRIC, BUS, JOURNAL, METRICS_FILE = "src/shell/fabric.c", "src/pkeyd/bus.c", "src/shell/journal_fields.c", "src/pkeyd/metrics_file.c"
METRICS, FILE, WRITER_PHASES = "src/metrics/metrics.c", "src/opensm/partitions_file.c", "src/opensm_writer/opensm_writer_phases.c"
CLIENT, OPTIONS, REST = "src/session/bus_client.c", "src/pkeyd/pkeyd_options.c", "src/pkeyd_rest/pkeyd_rest.c"

WRONGS = [
    # names
    Wrong("fabric-name-too-long", FABRIC, "n > FABRIC_NAME_MAX ||", "n > FABRIC_NAME_MAX + 1 ||"),
    Wrong("fabric-name-begins-with-a-digit", FABRIC, "!isalpha((unsigned char) name[0])", "!isalnum((unsigned char) name[0])"),
    Wrong("fabric-name-of-the-lock", FABRIC, " || strcmp(name, RESERVED) == 0)", ")"),
    Wrong("fabric-name-without-its-end", FABRIC, "for (size_t i = 0; i < n; i++)\n                if (!isascii", "for (size_t i = 0; i + 1 < n; i++)\n                if (!isascii"),
    Wrong("fabric-name-with-a-dot", FABRIC, "name[i] != '-' &&", "name[i] != '-' && name[i] != '.' &&"),
    Wrong("fabric-empty-is-a-name", FABRIC, "if (!name || !*name)", "if (!name)"),
    Wrong("fabric-path-with-a-dash", FABRIC, "if (*name == '-')", "if (*name == '=')"),
    # what belongs to each
    Wrong("fabric-shares-the-store", FABRIC, 'arena_printf(a, STATE_DIR "/%s", name)', 'arena_strdup(a, STATE_DIR)'),
    Wrong("fabric-shares-the-policy", FABRIC, 'arena_printf(a, CONFIG_DIR "/%s/partitions.yaml", name)', 'arena_strdup(a, CONFIG_DIR "/partitions.yaml")'),
    Wrong("fabric-shares-the-bus-name", FABRIC, 'arena_printf(a, FABRIC_BUS_NAME ".%s", name)', 'arena_strdup(a, FABRIC_BUS_NAME)'),
    Wrong("fabric-default-of-the-daemon", OPTIONS, "o.policy_file = o.policy_file ?: o.fabric.policy_file;", 'o.policy_file = o.policy_file ?: CONFIG_DIR "/partitions.yaml";'),
    Wrong("fabric-list-without-files", FABRIC, "if (!is_name(e->d_name) || !has_files(dirfd(dir), e->d_name))", "if (!is_name(e->d_name) || (has_files(dirfd(dir), e->d_name) && false))"),
    Wrong("fabric-list-by-settings-only", FABRIC, "        return faccessat(dir, path, F_OK, 0) == 0;\n}", "        return false;\n}"),
    # the bus
    Wrong("fabric-waits-for-no-common-name", BUS, "        if (b->fabric->name)\n                r = sd_bus_request_name_async", "        if (false)\n                r = sd_bus_request_name_async"),
    Wrong("fabric-keeps-the-common-name", BUS, "SD_BUS_NAME_QUEUE | SD_BUS_NAME_ALLOW_REPLACEMENT", "SD_BUS_NAME_QUEUE"),
    Wrong("fabric-does-not-take-the-common-name", BUS, "b->fabric->name ? 0 : SD_BUS_NAME_REPLACE_EXISTING", "0"),
    Wrong("fabric-absent-is-another-error", CLIENT, " ||\n            sd_bus_error_has_name(e, SD_BUS_ERROR_UNKNOWN_OBJECT)) /*", ") /*"),
    # the journal, the metrics, OpenSM's file
    Wrong("fabric-journal-without", JOURNAL, '"%s%s%s", program, fabric ? "@" : "", fabric ?: "")', '"%s", program)'),
    Wrong("metrics-of-a-failed-write-stay", METRICS_FILE, "f->is_written |= r == 0;", "f->is_written = r == 0;"),
    Wrong("fabric-metrics-of-another", METRICS_FILE, "        if (is_of_another(f, path))\n                return -EEXIST;\n", "        if (is_of_another(f, path) && false)\n                return -EEXIST;\n"),
    Wrong("fabric-metrics-of-none", METRICS_FILE, '"version=";\n', '"";\n'),
    Wrong("fabric-metrics-by-a-prefix", METRICS_FILE, 'snprintf(label, sizeof(label), "fabric=\\"%s\\",", f->fabric)', 'snprintf(label, sizeof(label), "fabric=\\"%s", f->fabric)'),
    Wrong("fabric-label-once", METRICS, '        if (p->fabric)\n                text_add(&p->text, "%s{fabric=\\"%s\\",", name, p->fabric);', '        if (!p)\n                text_add(&p->text, "%s{fabric=\\"%s\\",", name, p->fabric);'),
    Wrong("fabric-file-of-none", FILE, "                return !fabric;\n", "                return true;\n"),
    Wrong("fabric-file-by-a-prefix", FILE, " || own->p[length] != ' ')", ")"),
    Wrong("fabric-file-without", WRITER_PHASES, "        file.fabric = w->job.fabric;\n", ""),
    Wrong("fabric-file-is-ours", FILE, "        if (!is_ours)\n                return PARTITIONS_FILE_OTHER;\n", "        if (!is_ours && false)\n                return PARTITIONS_FILE_OTHER;\n"),
    Wrong("fabric-rest-reads-another-file", REST, "o.config_file ?: o.fabric.rest_file", "o.config_file ?: o.fabric.config_file"),
]
