# util/: arenas, base64, findings, hashes and an index by them, JSON members, YAML files, texts to build and to take apart, near words
libpkeyd_core_la_SOURCES += \
	src/util/arena.c \
	src/util/arena.h \
	src/util/base64.c \
	src/util/base64.h \
	src/util/duration.c \
	src/util/duration.h \
	src/util/file_report.c \
	src/util/file_report.h \
	src/util/finding-codes.def \
	src/util/findings.c \
	src/util/findings.h \
	src/util/hash.h \
	src/util/hash_index.c \
	src/util/hash_index.h \
	src/util/json.c \
	src/util/json.h \
	src/util/macros.h \
	src/util/nearest.c \
	src/util/nearest.h \
	src/util/scan.c \
	src/util/scan.h \
	src/util/text.c \
	src/util/text.h \
	src/util/vector.c \
	src/util/vector.h \
	src/util/yaml_source.c \
	src/util/yaml_source.h \
	src/util/yaml_tree.c \
	src/util/yaml_tree.h
