/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "shell/ipoib_interface.h"

#include <dirent.h>
#include <limits.h>
#include <net/if_arp.h>
#include <string.h>

#include "util/macros.h"

/* The number in a file of one interface; -1: there is no such file, or no number in it. */
static long read_number(const char *net, const char *interface, const char *file)
{
        char path[PATH_MAX];
        long value = -1;
        FILE *f;

        (void) snprintf(path, sizeof(path), "%s/%s/%s", net, interface, file);
        f = fopen(path, "re");
        if (!f)
                return -1;
        if (fscanf(f, "%ld", &value) != 1)
                value = -1;
        (void) fclose(f);
        return value;
}

static bool is_child(const char *net, const char *interface)
{
        char path[PATH_MAX];

        (void) snprintf(path, sizeof(path), "%s/%s/parent", net, interface);
        return access(path, F_OK) == 0;
}

/* Do both belong to one device, such as a PCI function? */
static bool same_device(const char *net, const char *interface, const char *device)
{
        char of_interface[PATH_MAX], of_device[PATH_MAX], x[PATH_MAX], y[PATH_MAX];

        (void) snprintf(of_interface, sizeof(of_interface), "%s/%s/device", net, interface);
        (void) snprintf(of_device, sizeof(of_device), "%s/device", device);
        return realpath(of_interface, x) && realpath(of_device, y) && strcmp(x, y) == 0;
}

bool ipoib_interface_find(const char *net, const char *device, unsigned port, char ret[IF_NAMESIZE])
{
        DIR *directory = opendir(net);
        const struct dirent *entry;
        bool found = false;

        while (directory && !found && (entry = readdir(directory))) {
                const char *name = entry->d_name;

                found = strlen(name) < IF_NAMESIZE && read_number(net, name, "type") == ARPHRD_INFINIBAND &&
                        read_number(net, name, "dev_port") == (long) port - 1 && !is_child(net, name) &&
                        same_device(net, name, device);
                if (found)
                        (void) strcpy(ret, name);
        }
        if (directory)
                (void) closedir(directory);
        return found;
}
