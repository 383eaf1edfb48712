# man/
dist_man_MANS += man/pkeyd.8
