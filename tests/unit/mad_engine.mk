# unit tests of src/mad_engine
