/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A secret that both ends have in a file. Each proves to the other that it has it, by HMAC-SHA256 over numbers
 * that both have just drawn: it never travels, and what travels is of no use a second time. What follows is
 * neither encrypted nor signed.
 */
#ifndef LAYOVER_TOKEN_H
#define LAYOVER_TOKEN_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

enum { TOKEN_MAX = 4096, TOKEN_NONCE_HEX = 33, TOKEN_PROOF_HEX = 65 };

struct token {
	size_t size;
	unsigned char secret[TOKEN_MAX];
};

/* Both ends' numbers of one session, in hexadecimal. */
struct token_nonces {
	char server[TOKEN_NONCE_HEX], client[TOKEN_NONCE_HEX];
};

/*
 * Reads the secret: all of the file but the newlines at its end, 1 to TOKEN_MAX bytes. -errno with a sentence
 * when it cannot be read, is empty or too long, or when everybody may read it (-EPERM).
 */
int token_read(const char *path, struct token *token);

/* A fresh number. 0 or -errno with a sentence. */
int token_draw(char nonce[TOKEN_NONCE_HEX]);

/* Copies a number out of a peer's frame. False when there is none of that form. */
bool token_get_nonce(const json_t *frame, char nonce[TOKEN_NONCE_HEX]);

/* What the end named `role`, "client" or "server", says to prove that it has the secret. */
void token_prove(const struct token *token, const char *role, const struct token_nonces *nonces,
		 char proof[TOKEN_PROOF_HEX]);

/* Whether the frame's "proof" is that of `role`; in constant time. */
bool token_check(const struct token *token, const char *role, const struct token_nonces *nonces,
		 const json_t *frame);

#endif
