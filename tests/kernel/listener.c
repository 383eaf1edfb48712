/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * listener DEVICE: receives the Reports of the SA at port 1, as a program that was started before pkeyd. Prints "listening", and runs
 * until its standard input ends.
 */
#include <stdio.h>
#include <unistd.h>

#include <infiniband/umad.h>

enum { CLASS_SA = 3, CLASS_VERSION = 2, REPORT = 6 };

int main(int argc, char **argv)
{
        long methods[16 / sizeof(long)] = { 1L << REPORT };
        char c;
        int fd;

        if (argc != 2 || umad_init() < 0)
                return 1;
        fd = umad_open_port(argv[1], 1);
        if (fd < 0 || umad_register(fd, CLASS_SA, CLASS_VERSION, 0, methods) < 0)
                return 1;
        puts("listening");
        fflush(stdout);
        while (read(STDIN_FILENO, &c, 1) > 0)
                ;
        return 0;
}
