# man/
dist_man_MANS += man/pkeyd.8
dist_man_MANS += man/pkeyctl.1
