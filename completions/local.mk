# completions/: for the shells, which load them by the name of the command
bashcompletiondir = $(datadir)/bash-completion/completions
dist_bashcompletion_DATA = completions/pkeyctl.bash
zshcompletiondir = $(datadir)/zsh/site-functions
dist_zshcompletion_DATA = completions/_pkeyctl
fishcompletiondir = $(datadir)/fish/vendor_completions.d
dist_fishcompletion_DATA = completions/pkeyctl.fish
