// SPDX-License-Identifier: GPL-2.0-only
#include "load/token.h"

#include <errno.h>
#include <fcntl.h>
#include <nettle/hmac.h>
#include <nettle/memops.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"

/* What is signed begins with it: no other use of the same secret makes the same proof. */
#define PURPOSE "layover session"

enum { NONCE_BYTES = (TOKEN_NONCE_HEX - 1) / 2 };

static int check_file(const char *path, int fd)
{
	struct stat file;

	if (fstat(fd, &file))
		return err_set(-errno, "cannot read the token file %s: %s", path, strerror(errno));
	if (!S_ISREG(file.st_mode))
		return err_set(-EINVAL, "the token file %s is no regular file", path);
	if (file.st_mode & S_IROTH)
		return err_set(
			-EPERM,
			"everybody may read the token file %s: 'chmod o= %s' keeps it secret", path,
			path);
	return 0;
}

static int read_secret(const char *path, int fd, struct token *token)
{
	char more;
	ssize_t n = read(fd, token->secret, sizeof(token->secret));

	if (n < 0)
		return err_set(-errno, "cannot read the token file %s: %s", path, strerror(errno));
	if (n == TOKEN_MAX && read(fd, &more, 1) == 1)
		return err_set(-EFBIG, "the token file %s is longer than %d bytes", path,
			       TOKEN_MAX);
	while (n && (token->secret[n - 1] == '\n' || token->secret[n - 1] == '\r'))
		n--;
	token->size = (size_t)n;
	return n ? 0 : err_set(-EINVAL, "the token file %s is empty", path);
}

int token_read(const char *path, struct token *token)
{
	/* A FIFO must not keep us waiting. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), rc;

	if (fd < 0)
		return err_set(-errno, "cannot read the token file %s: %s", path, strerror(errno));
	rc = check_file(path, fd);
	if (!rc)
		rc = read_secret(path, fd, token);
	close(fd);
	return rc;
}

static void to_hex(const unsigned char *bytes, size_t n, char *text)
{
	for (size_t i = 0; i < n; i++)
		snprintf(text + 2 * i, 3, "%02x", bytes[i]);
}

int token_draw(char nonce[TOKEN_NONCE_HEX])
{
	unsigned char bytes[NONCE_BYTES];

	if (getrandom(bytes, sizeof(bytes), 0) != sizeof(bytes))
		return err_set(-EIO, "cannot draw a random number");
	to_hex(bytes, sizeof(bytes), nonce);
	return 0;
}

bool token_get_nonce(const json_t *frame, char nonce[TOKEN_NONCE_HEX])
{
	const char *text = json_string_value(json_object_get(frame, "nonce"));

	if (!text || strspn(text, "0123456789abcdef") != TOKEN_NONCE_HEX - 1 ||
	    text[TOKEN_NONCE_HEX - 1])
		return false;
	memcpy(nonce, text, TOKEN_NONCE_HEX);
	return true;
}

void token_prove(const struct token *token, const char *role, const struct token_nonces *nonces,
		 char proof[TOKEN_PROOF_HEX])
{
	/* The terminating zeros divide the parts. */
	const struct {
		const void *bytes;
		size_t size;
	} parts[] = {{PURPOSE, sizeof(PURPOSE)},
		     {role, strlen(role) + 1},
		     {nonces->server, TOKEN_NONCE_HEX},
		     {nonces->client, TOKEN_NONCE_HEX}};
	unsigned char digest[SHA256_DIGEST_SIZE];
	struct hmac_sha256_ctx context;

	hmac_sha256_set_key(&context, token->size, token->secret);
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		hmac_sha256_update(&context, parts[i].size, parts[i].bytes);
	hmac_sha256_digest(&context, sizeof(digest), digest);
	to_hex(digest, sizeof(digest), proof);
	explicit_bzero(&context, sizeof(context));
}

bool token_check(const struct token *token, const char *role, const struct token_nonces *nonces,
		 const json_t *frame)
{
	const char *theirs = json_string_value(json_object_get(frame, "proof"));
	char ours[TOKEN_PROOF_HEX];

	token_prove(token, role, nonces, ours);
	return theirs && strlen(theirs) == TOKEN_PROOF_HEX - 1 &&
	       memeql_sec(ours, theirs, TOKEN_PROOF_HEX - 1);
}
