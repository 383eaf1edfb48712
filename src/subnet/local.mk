# subnet/
libpkeyd_core_la_SOURCES += \
	src/subnet/observed.h \
	src/subnet/stage.h \
	src/subnet/subnet.h \
	src/subnet/survey.h
