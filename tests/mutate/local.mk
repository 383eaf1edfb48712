# tests/mutate: a script to run by hand. make check only tests its generator.
TESTS += tests/mutate/check_generate.py
EXTRA_DIST += tests/mutate/mutate tests/mutate/wrongs.py tests/mutate/wrongs_confirm.py tests/mutate/wrongs_pins.py \
        tests/mutate/wrongs_etcd.py tests/mutate/wrongs_fabrics.py tests/mutate/wrongs_index0.py tests/mutate/wrongs_leases.py tests/mutate/wrongs_pools.py tests/mutate/wrongs_rest.py \
        tests/mutate/wrongs_typing.py tests/mutate/generate.py tests/mutate/check_generate.py
