/* A TLS 1.3 client and server of wolfSSL, for `cargo xtask interop`; the arguments are those of peer.go. */

#include <wolfssl/options.h>
#include <wolfssl/ssl.h>

#include <arpa/inet.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

static const char REQUEST[] = "GET / HTTP/1.0\r\n\r\n";
static const char ANSWER[] = "HTTP/1.0 200 OK\r\n\r\n<html>wolfSSL</html>\n";

static void require(int is_fine, const char *what)
{
    if (!is_fine) {
        fprintf(stderr, "%s\n", what);
        exit(1);
    }
}

static WOLFSSL_CTX *context(WOLFSSL_METHOD *method, const char *root)
{
    WOLFSSL_CTX *context = wolfSSL_CTX_new(method);
    require(context != NULL, "no context");
    require(wolfSSL_CTX_load_verify_locations(context, root, NULL) == WOLFSSL_SUCCESS, "root");
    return context;
}

static void use(WOLFSSL_CTX *context, const char *chain, const char *key)
{
    require(wolfSSL_CTX_use_certificate_chain_file(context, chain) == WOLFSSL_SUCCESS, "chain");
    require(wolfSSL_CTX_use_PrivateKey_file(context, key, WOLFSSL_FILETYPE_PEM) == WOLFSSL_SUCCESS, "key");
}

static struct sockaddr_in local(const char *port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port))};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
}

static void limit(int stream)
{
    struct timeval limit = {.tv_sec = 10};
    setsockopt(stream, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    setsockopt(stream, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
}

static void reply(WOLFSSL *ssl)
{
    char request[4096] = "";
    size_t length = 0;
    while (strstr(request, "\r\n\r\n") == NULL) {
        int count = wolfSSL_read(ssl, request + length, (int)(sizeof request - 1 - length));
        if (count <= 0) {
            fprintf(stderr, "error %d\n", wolfSSL_get_error(ssl, count));
            return;
        }
        length += (size_t)count;
        request[length] = 0;
    }
    wolfSSL_write(ssl, ANSWER, sizeof ANSWER - 1);
    /* The second call waits for the client's own word, unread bytes of which would reset the connection. */
    if (wolfSSL_shutdown(ssl) == WOLFSSL_SHUTDOWN_NOT_DONE)
        wolfSSL_shutdown(ssl);
}

static void serve(const char *port, const char *chain, const char *key, const char *root, int wants_certificate)
{
    WOLFSSL_CTX *ctx = context(wolfTLSv1_3_server_method(), root);
    struct sockaddr_in address = local(port);
    int listener = socket(AF_INET, SOCK_STREAM, 0), yes = 1;
    use(ctx, chain, key);
    if (wants_certificate)
        wolfSSL_CTX_set_verify(ctx, WOLFSSL_VERIFY_PEER | WOLFSSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    require(bind(listener, (struct sockaddr *)&address, sizeof address) == 0, "bind");
    require(listen(listener, 8) == 0, "listen");
    for (;;) {
        int stream = accept(listener, NULL, NULL);
        WOLFSSL *ssl = wolfSSL_new(ctx);
        limit(stream);
        wolfSSL_set_fd(ssl, stream);
        reply(ssl);
        wolfSSL_free(ssl);
        close(stream);
    }
}

static void connect_to(const char *port, const char *root, int count, const char *chain, const char *key)
{
    WOLFSSL_CTX *ctx = context(wolfTLSv1_3_client_method(), root);
    WOLFSSL_SESSION *session = NULL;
    struct sockaddr_in address = local(port);
    if (chain != NULL)
        use(ctx, chain, key);
    while (count-- > 0) {
        char answer[4096];
        int length, stream = socket(AF_INET, SOCK_STREAM, 0);
        WOLFSSL *ssl = wolfSSL_new(ctx);
        limit(stream);
        require(connect(stream, (struct sockaddr *)&address, sizeof address) == 0, "connect");
        require(wolfSSL_check_domain_name(ssl, "device.test") == WOLFSSL_SUCCESS, "name");
        if (session != NULL)
            wolfSSL_set_session(ssl, session);
        wolfSSL_set_fd(ssl, stream);
        if (wolfSSL_write(ssl, REQUEST, sizeof REQUEST - 1) <= 0) {
            fprintf(stderr, "error %d\n", wolfSSL_get_error(ssl, 0));
            exit(1);
        }
        while ((length = wolfSSL_read(ssl, answer, sizeof answer)) > 0)
            fwrite(answer, 1, (size_t)length, stdout);
        printf("resumed %s\n", wolfSSL_session_reused(ssl) ? "true" : "false");
        session = wolfSSL_get1_session(ssl);
        wolfSSL_free(ssl);
        close(stream);
    }
}

int main(int count, char **words)
{
    signal(SIGPIPE, SIG_IGN);
    wolfSSL_Init();
    if (count >= 6 && strcmp(words[1], "server") == 0)
        serve(words[2], words[3], words[4], words[5], count > 6);
    else if (count >= 5)
        connect_to(words[2], words[3], atoi(words[4]), count > 6 ? words[5] : NULL, count > 6 ? words[6] : NULL);
    return 0;
}
