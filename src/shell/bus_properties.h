/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The properties of the daemon's object on the bus (org.pkeyd1(5)), for pkeyd, which has them, and for its clients, which read
 * them.
 *
 * X(Name, "signature", member, KIND), in the order in which busctl shows them. The struct of pkeyd and that of its clients have a
 * member of this name, which is also the key in JSON. KIND, of enum bus_field_kind: how clients show it.
 */
#define BUS_PROPERTIES(X)                                                                                              \
        X(Version, "s", version, TEXT)                                                                                 \
        X(Fabric, "s", fabric, TEXT)                                                                                   \
        X(State, "s", state, TEXT)                                                                                     \
        X(StatusText, "s", text, TEXT)                                                                                 \
        X(Reloading, "b", reloading, BOOL)                                                                             \
        X(Generation, "t", generation, NUMBER)                                                                         \
        X(ConfirmUntil, "t", confirm_until, TIME)                                                                      \
        X(Undone, "t", undone, NUMBER)                                                                                 \
        X(Partitions, "u", partitions, NUMBER)                                                                         \
        X(Role, "s", role, TEXT)                                                                                       \
        X(Writing, "b", writing, BOOL)                                                                                 \
        X(Mode, "s", mode, TEXT)                                                                                       \
        X(PolicyFile, "s", policy_file, TEXT)                                                                          \
        X(FileErrors, "u", file_errors, NUMBER)                                                                        \
        X(PortsManaged, "u", ports_managed, NUMBER)                                                                    \
        X(PortsRight, "u", ports_right, NUMBER)                                                                        \
        X(PortsDiffer, "u", ports_differ, NUMBER)                                                                      \
        X(PortsUnreachable, "u", ports_unreachable, NUMBER)                                                            \
        X(LinksSilent, "u", links_silent, NUMBER)                                                                      \
        X(PortsFrozen, "u", ports_frozen, NUMBER)                                                                      \
        X(Frozen, "s", frozen, TEXT)                                                                                   \
        X(NamesClaimed, "u", names_claimed, NUMBER)                                                                    \
        X(Claims, "s", claims, TEXT)                                                                                   \
        X(HeldBases, "u", held_bases, NUMBER)                                                                          \
        X(Held, "s", held, TEXT)                                                                                       \
        X(Leases, "u", leases, NUMBER)                                                                                 \
        X(LeasesReleasing, "u", leases_releasing, NUMBER)                                                              \
        X(LastSuccess, "t", last_success, TIME)                                                                        \
        X(ViolationsTotal, "t", violations_total, NUMBER)                                                              \
        X(ViolationsSince, "t", violations_since, TIME)                                                                \
        X(Notices, "s", notices, TEXT)
