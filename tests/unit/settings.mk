# unit tests of src/settings
