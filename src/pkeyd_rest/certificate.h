/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <gnutls/gnutls.h>

/* The subject of the client certificate of a session (RFC 4514, as CN=nico,O=Example), if it was signed by the CA that the session
 * trusts, is valid now, and is one for clients. Returns owned; NULL: there is none. */
char *certificate_subject(gnutls_session_t session);
