"""A TLS 1.3 client and server of tlslite-ng, for `cargo xtask interop`; the arguments are those of peer.go."""

import socket
import sys

from tlslite.api import HandshakeSettings, TLSConnection, X509CertChain, parsePEMKey

ANSWER = b"HTTP/1.0 200 OK\r\n\r\n<html>tlslite-ng</html>\n"


def settings():
    settings = HandshakeSettings()
    settings.minVersion = settings.maxVersion = (3, 4)
    # Its client compresses its certificate by its own offer alone, whatever the server's request says; RFC 8879
    # §4 allows that only to a peer that offered it.
    settings.certificate_compression_send = []
    settings.ticketKeys = [bytearray(range(32))]
    return settings


def credentials(chain_path, key_path):
    chain = X509CertChain()
    with open(chain_path) as file:
        chain.parsePemList(file.read())
    with open(key_path) as file:
        key = parsePEMKey(file.read(), private=True)
    return chain, key


def serve(port, chain_path, key_path, _root, *wants_certificate):
    chain, key = credentials(chain_path, key_path)
    listener = socket.create_server(("127.0.0.1", int(port)))
    while True:
        stream, _ = listener.accept()
        stream.settimeout(10)
        connection = TLSConnection(stream)
        try:
            connection.handshakeServer(
                certChain=chain,
                privateKey=key,
                settings=settings(),
                reqCert=bool(wants_certificate),
                alpn=[bytearray(b"http/1.1")],
            )
            if wants_certificate and connection.session.clientCertChain is None:
                raise ConnectionError("the client has no certificate")
            request = b""
            while b"\r\n\r\n" not in request:
                part = connection.read(max=4096)
                if not part:
                    raise ConnectionError("the client closed")
                request += part
            connection.write(ANSWER)
            connection.closeSocket = False
            connection.close()
            stream.shutdown(socket.SHUT_WR)
            # Unread bytes of the client would reset the connection.
            while stream.recv(4096):
                pass
        except Exception as error:
            print(error, file=sys.stderr)
        finally:
            stream.close()


def connect(port, _root, count, *own):
    chain, key = credentials(*own) if own else (None, None)
    session = None
    for _ in range(int(count)):
        stream = socket.create_connection(("127.0.0.1", int(port)), timeout=10)
        connection = TLSConnection(stream)
        connection.handshakeClientCert(
            chain, key, session=session, settings=settings(), serverName="device.test"
        )
        connection.write(b"GET / HTTP/1.0\r\n\r\n")
        while part := connection.read(max=4096):
            sys.stdout.write(part.decode())
        print("resumed", "true" if connection.resumed else "false")
        session = connection.session
        stream.close()


if __name__ == "__main__":
    {"server": serve, "client": connect}[sys.argv[1]](*sys.argv[2:])
