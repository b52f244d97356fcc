"""A server of mails for tests: aiosmtpd on a free port of this computer.

mail_server.py MODE CERTIFICATE KEY ANSWER...

MODE is plain, starttls or implicit; but for plain, it wants the user hub with the password hunter2. It gives the answers to
mails, one after the other, and the last one from then on. It prints its port, and a line of JSON for each mail.
"""

import asyncio
import json
import ssl
import sys

from aiosmtpd.smtp import SMTP, AuthResult

MODE, CERTIFICATE, KEY, *ANSWERS = sys.argv[1:]


class Handler:
    """Gives the answers, and says what came."""

    def __init__(self):
        self.came = 0

    async def handle_DATA(self, server, session, envelope):
        answer = ANSWERS[min(self.came, len(ANSWERS) - 1)]
        self.came += 1
        mail = {
            "from": envelope.mail_from,
            "to": envelope.rcpt_tos,
            "content": envelope.content.decode("ascii"),
            "tls": session.ssl is not None or MODE == "implicit",
            "user": session.auth_data.login.decode() if session.auth_data else None,
            "answer": answer,
        }
        print(json.dumps(mail), flush=True)
        return answer


def check(server, session, envelope, mechanism, login):
    is_good = login.login == b"hub" and login.password == b"hunter2"
    return AuthResult(success=is_good, handled=False, auth_data=login)


async def serve():
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATE, KEY)
    handler = Handler()
    options = {"hostname": "mail.example"}
    if MODE != "plain":
        options |= {"authenticator": check, "auth_required": True}
    if MODE == "starttls":
        options |= {"tls_context": context, "require_starttls": True}
    if MODE == "implicit":
        # TLS is below it here.
        options |= {"auth_require_tls": False}
    server = await asyncio.get_running_loop().create_server(
        lambda: SMTP(handler, **options),
        host="127.0.0.1",
        port=0,
        ssl=context if MODE == "implicit" else None,
    )
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


asyncio.run(serve())
