# pkeyctl/: the tool
