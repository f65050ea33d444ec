"""What has to hold of every answer, beside its schema: hooks for schemathesis, which rest_flow.py starts."""

import os

import schemathesis

# Words and ids of what the caller may not see.
HIDDEN = [word for word in os.environ.get("CAIRN_HIDDEN", "").split(",") if word]


@schemathesis.check
def no_fault_of_ours(_ctx, response, case):
    """No 5xx but 503 and 504 where the document names them; the first says when to come again."""
    status = response.status_code
    if status < 500:
        return
    if str(status) not in case.operation.definition.raw["responses"] or status not in (503, 504):
        raise AssertionError(f"it answered {status}")
    if status == 503 and not any(name.lower() == "retry-after" for name in response.headers):
        raise AssertionError("503 without Retry-After")


@schemathesis.check
def nothing_hidden(_ctx, response, _case):
    """Nothing outside of the caller's scope, in the body or in a header."""
    told = response.content.decode("utf-8", "replace") + repr(response.headers)
    for word in HIDDEN:
        if word in told:
            raise AssertionError(f"it tells {word}, which is out of scope")
