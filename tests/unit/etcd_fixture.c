/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "etcd_fixture.h"

#include <arpa/inet.h>
#include <check.h>
#include <fcntl.h>
#include <glob.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "etcd/etcd_http.h"
#include "util/text.h"

bool etcd_is_installed(void)
{
        return system("etcd --version 2>/dev/null | grep -qE '^etcd Version: ([4-9]|3\\.([4-9]|[1-9][0-9]))'") == 0;
}

/* A port that is free now. *ret_fd keeps others from getting it. */
static unsigned reserve_port(int *ret_fd)
{
        struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        socklen_t n = sizeof(a);

        *ret_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        ck_assert_int_ge(*ret_fd, 0);
        ck_assert_int_eq(bind(*ret_fd, (struct sockaddr *) &a, n), 0);
        ck_assert_int_eq(getsockname(*ret_fd, (struct sockaddr *) &a, &n), 0);
        return ntohs(a.sin_port);
}

static pid_t start_member(const struct etcd_cluster *c, unsigned i, const char *peers, const char *peer)
{
        char name[16], dir[96], log[112];
        pid_t pid;
        int fd;

        snprintf(name, sizeof(name), "m%u", i);
        snprintf(dir, sizeof(dir), "%s/%s", c->dir, name);
        snprintf(log, sizeof(log), "%s.log", dir);
        pid = fork();
        if (pid != 0)
                return pid;
        (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
        fd = open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);
        (void) dup2(fd, STDOUT_FILENO);
        (void) dup2(fd, STDERR_FILENO);
        execlp("etcd", "etcd", "--name", name, "--data-dir", dir, "--listen-client-urls", c->urls[i], "--advertise-client-urls",
               c->urls[i], "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", peers,
               "--heartbeat-interval", "50", "--election-timeout", "500", "--log-level", "error", (char *) NULL);
        _exit(127);
}

static void keep_answer(int r, json_t *answer, void *userdata)
{
        (void) answer;
        *(int *) userdata = r;
}

static void wait_for_member(const char *url)
{
        const struct etcd_config config = { .endpoints = &url, .n_endpoints = 1 };
        sd_event *event = NULL;
        struct etcd_http *h = NULL;
        int r = 1;

        ck_assert_int_ge(sd_event_new(&event), 0);
        ck_assert_int_eq(etcd_http_new(event, &config, &h), 0);
        ck_assert_int_eq(etcd_http_post(h, "/v3/kv/range", json_pack("{ss}", "key", "YQ=="), 60 * USEC_PER_SEC, keep_answer, &r, NULL), 0);
        while (r > 0)
                ck_assert_int_ge(sd_event_run(event, UINT64_MAX), 0);
        ck_assert_msg(r == 0, "%s: %s: %s", url, strerror(-r), etcd_http_problem(h));
        etcd_http_free(h);
        sd_event_unref(event);
}

void etcd_cluster_start(struct etcd_cluster *c, unsigned n)
{
        int fds[2 * ETCD_MAX_MEMBERS];
        char peer[ETCD_MAX_MEMBERS][40];
        char peers[256] = "";

        *c = (struct etcd_cluster) { .n = n, .dir = "/tmp/check_etcd.XXXXXX" };
        ck_assert_ptr_nonnull(mkdtemp(c->dir));
        for (unsigned i = 0; i < n; i++) {
                snprintf(c->urls[i], sizeof(c->urls[i]), "http://127.0.0.1:%u", reserve_port(&fds[2 * i]));
                c->endpoints[i] = c->urls[i];
                snprintf(peer[i], sizeof(peer[i]), "http://127.0.0.1:%u", reserve_port(&fds[2 * i + 1]));
                snprintf(peers + strlen(peers), sizeof(peers) - strlen(peers), "%sm%u=%s", i ? "," : "", i, peer[i]);
        }
        for (unsigned i = 0; i < 2 * n; i++)
                close(fds[i]);
        for (unsigned i = 0; i < n; i++)
                c->pids[i] = start_member(c, i, peers, peer[i]);
        for (unsigned i = 0; i < n; i++)
                wait_for_member(c->urls[i]);
}

void etcd_cluster_stop(struct etcd_cluster *c)
{
        char command[96];

        for (unsigned i = 0; i < c->n; i++) {
                (void) kill(c->pids[i], SIGKILL);
                (void) waitpid(c->pids[i], NULL, 0);
        }
        snprintf(command, sizeof(command), "rm -rf %s", c->dir);
        if (c->n > 0)
                ck_assert_int_eq(system(command), 0);
        *c = (struct etcd_cluster) {};
}

static bool are_stopped(const glob_t *threads)
{
        for (size_t i = 0; i < threads->gl_pathc; i++) {
                FILE *f = fopen(threads->gl_pathv[i], "re");
                char state;
                bool runs = f && fscanf(f, "%*d (%*[^)]) %c", &state) == 1 && state != 'T'; /* else it may have ended */

                if (f)
                        fclose(f);
                if (runs)
                        return false;
        }
        return true;
}

void etcd_cluster_pause(const struct etcd_cluster *c, unsigned member)
{
        char pattern[64];
        bool stopped = false;

        ck_assert_int_eq(kill(c->pids[member], SIGSTOP), 0);
        snprintf(pattern, sizeof(pattern), "/proc/%d/task/*/stat", (int) c->pids[member]);
        while (!stopped) {
                glob_t threads;

                ck_assert_int_eq(glob(pattern, 0, NULL, &threads), 0);
                stopped = are_stopped(&threads);
                globfree(&threads);
                if (!stopped)
                        usleep(1000);
        }
}

void etcd_cluster_config(const struct etcd_cluster *c, struct etcd_config *ret)
{
        *ret = (struct etcd_config) { .endpoints = c->endpoints, .n_endpoints = c->n, .lease = ETCD_FIXTURE_LEASE };
}
