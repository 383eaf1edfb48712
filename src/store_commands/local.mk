# store_commands/: the commands of pkeyctl that work with the store
pkeyctl_SOURCES += \
	src/store_commands/command_forget.c \
	src/store_commands/command_history.c \
	src/store_commands/command_pins.c \
	src/store_commands/command_replace.c \
	src/store_commands/command_show_held.c \
	src/store_commands/command_store.c \
	src/store_commands/explain_since.c \
	src/store_commands/store_change.c \
	src/store_commands/store_change.h \
	src/store_commands/store_commands.h \
	src/store_commands/vouches.c \
	src/store_commands/vouches.h
