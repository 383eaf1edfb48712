# pkeyd/: the daemon
