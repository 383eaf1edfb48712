# conf/: commented examples; an admin copies them to $(sysconfdir)/pkeyd
dist_doc_DATA += conf/partitions.yaml conf/pkeyd.yaml
