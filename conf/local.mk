# conf/
