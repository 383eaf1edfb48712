# packaging/: what scripts/package builds packages from
EXTRA_DIST += packaging/audit.sed tests/package/deb tests/package/rpm tests/package/selinux tests/package/selinux_rules.py \
	tests/package/tarball
EXTRA_DIST += packaging/debian/README.Debian packaging/debian/changelog packaging/debian/control packaging/debian/copyright \
	packaging/debian/not-installed packaging/debian/pkeyctl.install packaging/debian/pkeyctl.lintian-overrides \
	packaging/debian/pkeyd-doc.install packaging/debian/pkeyd-doc.lintian-overrides packaging/debian/pkeyd-rest.install \
	packaging/debian/pkeyd-rest.lintian-overrides packaging/debian/pkeyd-rest.postinst packaging/debian/pkeyd-rest.prerm \
	packaging/debian/pkeyd.install packaging/debian/pkeyd.lintian-overrides packaging/debian/pkeyd.postinst \
	packaging/debian/pkeyd.postrm packaging/debian/pkeyd.prerm packaging/debian/rules packaging/debian/source/format \
	packaging/debian/source/lintian-overrides packaging/debian/tests/control packaging/debian/tests/demo \
	packaging/debian/tests/installed
EXTRA_DIST += packaging/rpm/macros.debian packaging/rpm/pkeyd.spec packaging/rpm/rpmlint.toml packaging/selinux/pkeyd.fc \
	packaging/selinux/pkeyd.if packaging/selinux/pkeyd.te packaging/selinux/pkeyd_selinux.8
