# report/: the page of `pkeyctl report`
pkeyctl_SOURCES += \
	src/report/command_report.c \
	src/report/report.h \
	src/report/report_json.c \
	src/report/report_page.c

# report/report.html as numbers, so that pkeyctl needs no file at run time.
nodist_pkeyctl_SOURCES = src/report/report_html.c
src/report/report_html.c: $(top_srcdir)/report/report.html
	$(AM_V_at)$(MKDIR_P) src/report
	$(AM_V_GEN)od -A n -v -t u1 $(top_srcdir)/report/report.html >$@.od && \
		{ echo '#include "report/report.h"' && echo 'const char report_html[] = {' && \
		sed 's/\([0-9][0-9]*\)/\1,/g' $@.od && echo '};' && echo 'const size_t report_html_size = sizeof(report_html);'; } >$@.new && \
		rm $@.od && mv $@.new $@
EXTRA_DIST += report/report.html
CLEANFILES += src/report/report_html.c src/report/report_html.c.od src/report/report_html.c.new
