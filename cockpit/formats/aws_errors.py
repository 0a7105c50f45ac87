"""What went wrong when a call to AWS failed: which permission is missing, and what to do next.

Errors are told apart by the code that AWS sends and by the names of botocore's exceptions, so that nothing here
loads botocore, and exceptions that an older one lacks do no harm.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from cockpit.models import Fault, FaultKind
from cockpit.text import printable

_SHOWN = 220
_ACTION = re.compile(r"not authorized to perform: ([a-z0-9-]+:[A-Za-z*]+)")

DENIED = frozenset({"UnauthorizedOperation", "AccessDenied", "AccessDeniedException", "AuthorizationError"})
THROTTLED = frozenset(
    {"RequestLimitExceeded", "Throttling", "ThrottlingException", "TooManyRequestsException", "ThrottledException",
     "ProvisionedThroughputExceededException", "RequestThrottled", "SlowDown"}
)  # fmt: skip
EXPIRED = frozenset({"ExpiredToken", "ExpiredTokenException", "RequestExpired"})
REFUSED_KEYS = frozenset({"AuthFailure", "UnrecognizedClientException", "InvalidClientTokenId"})
_NO_KEYS = frozenset({"NoCredentialsError", "PartialCredentialsError", "CredentialRetrievalError", "NoAuthTokenError"})
_LOGIN = frozenset({"SSOTokenLoadError", "UnauthorizedSSOTokenError", "TokenRetrievalError", "LoginTokenLoadError"})
_UNREACHED = frozenset(
    {"EndpointConnectionError", "ConnectionError", "ConnectionClosedError", "ProxyConnectionError", "SSLError"}
)
_LATE = frozenset({"ConnectTimeoutError", "ReadTimeoutError"})
# IAM calls some services by another name than botocore does.
_IAM_PREFIX = {"service-quotas": "servicequotas", "resourcegroupstaggingapi": "tag"}


@dataclass(frozen=True, slots=True)
class Call:
    """What was asked of AWS: `ec2`, `DescribeInstances`, in which region and as which profile."""

    service: str
    operation: str
    region: str = ""
    profile: str = ""
    what: str = ""  # in words: reading the instances

    @property
    def permission(self) -> str:
        """The IAM action that the call needs."""
        return f"{_IAM_PREFIX.get(self.service, self.service)}:{self.operation}"

    @property
    def words(self) -> str:
        """What was tried, for the fault."""
        return self.what or f"asking AWS for {self.permission}"


def code_of(error: BaseException) -> str:
    """The error code AWS sent, "" when it was not AWS that complained."""
    response = getattr(error, "response", None)
    details = response.get("Error") if isinstance(response, dict) else None
    return str(details.get("Code", "")) if isinstance(details, dict) else ""


def message_of(error: BaseException) -> str:
    """AWS's own sentence, else the exception's; one harmless line, cut."""
    response = getattr(error, "response", None)
    details = response.get("Error") if isinstance(response, dict) else None
    raw = details.get("Message") if isinstance(details, dict) else None
    text = printable(str(raw or error).split(" Encoded authorization failure message:")[0].strip())
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"


def fault_of(error: BaseException, call: Call) -> Fault:
    """The fault behind a failed call."""
    code = code_of(error)
    return _by_code(code, error, call) if code else _by_class(error, call)


def _by_code(code: str, error: BaseException, call: Call) -> Fault:
    what, said = call.words, message_of(error)
    if code in DENIED:
        found = _ACTION.search(str(error))
        action = printable(found[1]) if found else call.permission
        return Fault(FaultKind.DENIED, what, f"not allowed: {action} is missing", _ask_for(action, call))
    if code in THROTTLED:
        step = "it is asked again by itself, less often; who else polls this account?"
        return Fault(FaultKind.THROTTLED, what, f"AWS throttles {call.permission} ({code})", step)
    if code in EXPIRED:
        return Fault(FaultKind.AUTH, what, f"the AWS credentials have expired ({code})", _log_in(call))
    if code in REFUSED_KEYS:
        step = f"are the credentials of {_whom(call)} right, and is {call.region or 'the region'} enabled for them?"
        return Fault(FaultKind.AUTH, what, f"AWS does not take these credentials: {said}", step)
    if code == "SignatureDoesNotMatch":
        return Fault(
            FaultKind.AUTH, what, f"AWS refuses the signature: {said}", "check this machine's clock, then keys"
        )
    if code == "OptInRequired":
        return Fault(
            FaultKind.AUTH, what, f"this account has not opted in: {said}", f"enable {call.region} or subscribe"
        )
    if code == "ConditionalCheckFailedException":
        step = "somebody else changed it just now: read it again, then decide again"
        return Fault(FaultKind.CONFLICT, what, "it is no longer as it was shown", step)
    if code == "ConflictException":
        return Fault(FaultKind.CONFLICT, what, said, "it is there already, or is being changed: read it again")
    return _by_object(code, said, call)


def _by_object(code: str, said: str, call: Call) -> Fault:
    """What is not there, and the rest."""
    if code == "ValidationError" and said.endswith("does not exist"):
        step = f"check `stack` and `region` ({call.region}) in the config; has it been deleted?"
        return Fault(FaultKind.MISSING, call.words, said, step)
    if code in ("ResourceNotFoundException", "ResourceNotFound", "NoSuchResourceException") or code.endswith(
        ".NotFound"
    ):
        step = f"check the cluster's name and `region` ({call.region}) in the config; is it being deleted?"
        return Fault(FaultKind.MISSING, call.words, f"{said} ({code})", step)
    if code.isdigit():  # no error of AWS's form: a proxy's page, or a service in trouble
        return Fault(FaultKind.FAILED, call.words, f"{call.service} answered with HTTP status {code} and no reason", "")
    return Fault(FaultKind.FAILED, call.words, f"{said} ({code})", "")


def _by_class(error: BaseException, call: Call) -> Fault:
    names = {kind.__name__ for kind in type(error).__mro__}
    what, said = call.words, message_of(error)
    if "ProfileNotFound" in names:
        return Fault(FaultKind.AUTH, what, said, "check `profile` in the config against ~/.aws/config")
    if names & _LOGIN:
        return Fault(FaultKind.AUTH, what, f"the AWS login has ended: {said}", _log_in(call))
    if names & _NO_KEYS:
        step = "set `profile` in the config, or give this machine a role; without AWS everything else works"
        return Fault(FaultKind.AUTH, what, f"no usable AWS credentials for {_whom(call)}: {said}", step)
    if "NoRegionError" in names or "InvalidRegionError" in names:
        # As hopeless for every service as bad keys are, and read anew with them.
        return Fault(FaultKind.AUTH, what, said, "set `region` in the config, such as us-east-1")
    if names & _LATE:
        step = f"is {call.region or 'the region'} right, and may this machine reach AWS (proxy, VPC endpoint)?"
        return Fault(FaultKind.TIMEOUT, what, f"AWS does not answer: {said}", step)
    if names & _UNREACHED:
        step = f"is the region's name right ({call.region})? may this machine reach AWS (proxy, VPC endpoint)?"
        return Fault(FaultKind.UNREACHABLE, what, said, step)
    return Fault(FaultKind.FAILED, what, f"{type(error).__name__}: {said}", "")


def _ask_for(action: str, call: Call) -> str:
    return f"ask for {action} for {_whom(call)}; docs/AWS.md has the whole policy"


def _log_in(call: Call) -> str:
    login = f"aws sso login --profile {call.profile}" if call.profile else "aws sso login"
    return f"renew them (`{login}`, or however you log in); they are read again by themselves"


def _whom(call: Call) -> str:
    return f"profile {call.profile}" if call.profile else "the default profile"
