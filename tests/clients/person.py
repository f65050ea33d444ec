"""The person at a browser: signs in, allows, and gives back where the browser was sent. Standard library only."""

import http.cookiejar
import re
import sys
import html
import urllib.error
import urllib.parse
import urllib.request
import json


class _Stay(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_):
        return None


class Person:
    def __init__(self, bootstrap):
        with open(bootstrap, encoding="utf-8") as file:
            self.account = json.load(file)
        self.base = self.account["baseUrl"]
        cookies = urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar())
        self.browser = urllib.request.build_opener(_Stay, cookies)

    def _open(self, address, fields=None):
        data = urllib.parse.urlencode(fields, doseq=True).encode() if fields is not None else None
        address = urllib.parse.urljoin(self.base, address)
        try:
            with self.browser.open(address, data) as answer:
                return answer.status, None, answer.read().decode()
        except urllib.error.HTTPError as answer:
            return answer.code, answer.headers.get("location"), answer.read().decode()

    @staticmethod
    def _value(page, name):
        found = re.search(f'name="{name}" value="([^"]*)"', page)
        if not found:
            sys.exit(f"the page has no {name}: {page}")
        return html.unescape(found.group(1))

    def allow(self, address, permissions=("read", "write", "delete")):
        """Goes through the pages; answers the address that the client gets."""
        status, location, page = self._open(address)
        if status == 200 and "/oauth/sign-in" in page and 'name="csrf"' not in page:
            fields = {"request": self._value(page, "request")}
            fields |= {"email": self.account["email"], "password": self.account["password"]}
            status, location, page = self._open("/oauth/sign-in", fields)
            if status != 303:
                sys.exit(f"the sign-in answered {status}: {page}")
            status, location, page = self._open(location)
        if status != 200:
            return location or sys.exit(f"the page answered {status}: {page}")
        fields = {"request": self._value(page, "request"), "csrf": self._value(page, "csrf")}
        fields |= {"workspace": self.account["workspaceId"], "permission": permissions, "decision": "allow"}
        status, location, page = self._open("/oauth/authorize", fields)
        if status != 303:
            sys.exit(f"the consent answered {status}: {page}")
        return location


if __name__ == "__main__":
    # person.py BOOTSTRAP ADDRESS: goes through the pages and on to the client, as a browser would.
    target = Person(sys.argv[1]).allow(sys.argv[2])
    with urllib.request.urlopen(target) as reply:
        reply.read()
