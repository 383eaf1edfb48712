/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <gnutls/gnutls.h>

/* Returns owned the subject (RFC 4514, as CN=nico,O=Example) of the client certificate of a session; NULL: there is none, the CA of
 * the session did not sign it, it is not valid now, or it is not one for clients. */
char *certificate_subject(gnutls_session_t session);
