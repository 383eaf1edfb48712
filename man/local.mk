# man/
dist_man_MANS += man/pkeyd.8
dist_man_MANS += man/org.pkeyd1.5 man/pkeyctl-json.5 man/partitions.yaml.5 man/pkeyd.yaml.5
dist_man_MANS += man/pkeyd-etcd.7 man/pkeyd-opensm.7 man/pkeyd-tasks.7 man/pkeyd-violations.7
dist_man_MANS += man/pkeyctl.1 man/pkeyctl-history.1 man/pkeyctl-import.1 man/pkeyctl-lease.1 man/pkeyctl-pin.1
if ENABLE_REST
dist_man_MANS += man/pkeyd-rest.8 man/rest.yaml.5
endif
# automake leaves manual pages of a false conditional out of the tarball.
EXTRA_DIST += man/pkeyd-rest.8 man/rest.yaml.5
