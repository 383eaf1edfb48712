# tests/lint/: checks of the rules in HACKING.md. Each lint prints errors with their places.
LINTS = \
	tests/lint/alert_rules.py \
	tests/lint/bus_interface.py \
	tests/lint/cleanup_initialized.py \
	tests/lint/core_symbols.py \
	tests/lint/diagnosis_codes.py \
	tests/lint/finding_codes.py \
	tests/lint/function_length.py \
	tests/lint/header_order.py \
	tests/lint/json_keys.py \
	tests/lint/layout.py \
	tests/lint/manual_commands.py \
	tests/lint/manual_pages.py \
	tests/lint/manual_references.py \
	tests/lint/message_ids.py \
	tests/lint/metric_names.py \
	tests/lint/name_collisions.py \
	tests/lint/report_page.py \
	tests/lint/same_objects.py \
	tests/lint/schemas.py \
	tests/lint/words.py

TESTS += $(LINTS)
EXTRA_DIST += $(LINTS) tests/lint/lint.py tests/lint/alert_rules.yml
