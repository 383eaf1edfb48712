# mad_engine/
libpkeyd_core_la_SOURCES += \
	src/mad_engine/dispatcher.c \
	src/mad_engine/dispatcher.h \
	src/mad_engine/mad_engine.c \
	src/mad_engine/mad_engine.h \
	src/mad_engine/stage.h \
	src/mad_engine/transactions.c \
	src/mad_engine/transactions.h \
	src/mad_engine/window.c \
	src/mad_engine/window.h
