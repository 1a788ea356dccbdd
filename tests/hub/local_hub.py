"""A Hugging Face Hub on this machine: standard library, memory only, the real protocol for the real client.

It knows models and datasets, regular and LFS files, commits, branches, trees, downloads and collections. It can be told
to fail:

    with LocalHub() as hub:
        hub.fail("PUT", "/_lfs/", "close")          # the next upload is cut off halfway
        HfApi(endpoint=hub.url, token="dummy").upload_folder(...)
"""

import base64
import hashlib
import json
import os
import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from tests.hub import local_collections

USER = "tester"
_LFS_SUFFIXES = (".safetensors", ".bin", ".parquet", ".png", ".pt")
_LFS_BYTES = 10_000_000
_SLOW = 1.0  # seconds before an answer


@dataclass(frozen=True)
class Blob:
    """A file's content, and whether it is stored as LFS."""

    data: bytes
    lfs: bool

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.data).hexdigest()

    @property
    def git_oid(self) -> str:
        return hashlib.sha1(b"blob %d\0" % len(self.data) + self.data).hexdigest()

    @property
    def etag(self) -> str:
        return self.sha256 if self.lfs else self.git_oid


@dataclass(frozen=True)
class Commit:
    """One state of a repository."""

    sha: str
    title: str
    parent: str | None
    date: str
    files: dict[str, Blob]


@dataclass
class Repository:
    """A repository's commits and branches."""

    id: str
    private: bool
    commits: dict[str, Commit] = field(default_factory=dict)
    branches: dict[str, str] = field(default_factory=dict)

    def commit(self, files: dict[str, Blob], title: str, branch: str = "main") -> Commit:
        """Add a commit on a branch."""
        seed = f"{self.id} {len(self.commits)} {title}".encode()
        date = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")
        made = Commit(hashlib.sha1(seed).hexdigest(), title, self.branches.get(branch), date, files)
        self.commits[made.sha] = made
        self.branches[branch] = made.sha
        return made

    def at(self, revision: str | None) -> Commit | None:
        """The commit that a branch's name or a sha stands for."""
        revision = revision or "main"
        return self.commits.get(self.branches.get(revision, revision))

    def history(self) -> list[Commit]:
        """The commits of main, newest first."""
        found, sha = [], self.branches.get("main")
        while sha is not None:
            found.append(self.commits[sha])
            sha = self.commits[sha].parent
        return found


@dataclass
class Fault:
    """Answer `times` requests that match with `action`: an HTTP status, "close" halfway through the body, or "slow"."""

    method: str
    pattern: str
    action: int | str
    skip: int
    times: int

    def applies(self, method: str, path: str) -> bool:
        """Whether this request is to fail; counts it."""
        if self.method != method or not re.search(self.pattern, path) or self.times == 0:
            return False
        if self.skip:
            self.skip -= 1
            return False
        self.times -= 1
        return True


class LocalHub:
    """The server; `url` is its address, `requests` what it was asked, in order."""

    def __init__(self) -> None:
        self.repositories: dict[tuple[str, str], Repository] = {}
        self.lfs_objects: dict[str, bytes] = {}
        self.collections: dict[str, dict[str, Any]] = {}
        self.requests: list[tuple[str, str]] = []
        self.faults: list[Fault] = []
        self.lock = threading.RLock()
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.hub = self
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)

    def environment(self, home: str | os.PathLike[str]) -> dict[str, str]:
        """What a process needs to take this server for the Hub, with caches of its own in `home`."""
        return {
            **{name: value for name, value in os.environ.items() if not name.startswith(("HF_", "PYTHON"))},
            "HF_ENDPOINT": self.url,
            "HF_HOME": str(home),
            "HF_TOKEN": "dummy",
            "HF_HUB_DISABLE_XET": "1",
            "HF_HUB_DISABLE_TELEMETRY": "1",
            "HF_HUB_DISABLE_UPDATE_CHECK": "1",
        }

    def __enter__(self) -> "LocalHub":
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def fail(self, method: str, pattern: str, action: int | str, *, skip: int = 0, times: int = 1) -> None:
        """Let requests fail: those with this method whose path matches the regular expression."""
        self.faults.append(Fault(method, pattern, action, skip, times))

    def repository(self, repo_id: str, kind: str = "model") -> Repository:
        """The repository of that name, which must exist."""
        return self.repositories[kind, repo_id]


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    hub: LocalHub

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing about clients that went away."""


class _Missing(Exception):
    """What was asked for is not there; `code` is the Hub's X-Error-Code."""

    def __init__(self, code: str, message: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.headers = headers or {}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    @property
    def hub(self) -> LocalHub:
        return self.server.hub

    def log_message(self, format: str, *arguments: Any) -> None:
        """Nothing on stderr."""

    def do_any(self) -> None:
        """Fail if told to; else find the route and answer."""
        address = urlsplit(self.path)
        with self.hub.lock:
            self.hub.requests.append((self.command, address.path))
            fault = next((f for f in self.hub.faults if f.applies(self.command, address.path)), None)
        if fault is not None and fault.action == "close":
            self.rfile.read(int(self.headers.get("Content-Length") or 0) // 2)
            self.close_connection = True
            return
        self.body = self._read_body()
        if fault is not None and fault.action == "slow":
            time.sleep(_SLOW)
        elif fault is not None:
            self.answer({"error": "told to fail"}, status=int(fault.action))
            return
        self.query = {name: values[-1] for name, values in parse_qs(address.query).items()}
        method = "GET" if self.command == "HEAD" else self.command
        for route_method, pattern, function in _ROUTES:
            if route_method == method and (found := pattern.fullmatch(address.path)):
                arguments = {name: unquote(value) if value else None for name, value in found.groupdict().items()}
                with self.hub.lock:
                    try:
                        function(self, **arguments)
                    except _Missing as missing:
                        self.refuse(404, missing.code, str(missing), missing.headers)
                return
        self.refuse(404, "EntryNotFound", f"no route for {self.command} {address.path}")

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = do_any

    def _read_body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        body = b""
        while size := int(self.rfile.readline().split(b";")[0], 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    def json(self) -> Any:
        """The request's body."""
        return json.loads(self.body or b"{}")

    def answer(
        self,
        body: Any = b"",
        *,
        status: int = 200,
        content_type: str = "application/json",
        headers: dict[str, str] | None = None,
    ) -> None:
        """Send the reply; anything but bytes goes as JSON."""
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(data)))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def refuse(self, status: int, code: str, message: str, headers: dict[str, str] | None = None) -> None:
        """Send an error as the Hub does."""
        named = {"X-Error-Code": code, "X-Error-Message": message, **(headers or {})}
        self.answer({"error": message}, status=status, headers=named)

    def repository(self, kind: str, repo_id: str) -> Repository:
        found = self.hub.repositories.get((kind, repo_id))
        if found is None:
            raise _Missing("RepoNotFound", f"Repository not found: {repo_id}")
        return found

    def commit_at(self, kind: str, repo_id: str, revision: str | None) -> tuple[Repository, Commit]:
        repository = self.repository(kind, repo_id)
        commit = repository.at(revision)
        if commit is None:
            raise _Missing("RevisionNotFound", f"Invalid rev id: {revision}")
        return repository, commit


# ----------------------------------------------------------------------------------------------- accounts, repositories


def _who_am_i(request: _Handler) -> None:
    request.answer({"type": "user", "name": USER, "orgs": [], "auth": {"accessToken": {"role": "write"}}})


def _validate_yaml(request: _Handler) -> None:
    request.answer({"errors": [], "warnings": []})


def _create(request: _Handler) -> None:
    asked = request.json()
    kind, repo_id = asked.get("type") or "model", f"{asked.get('organization') or USER}/{asked['name']}"
    url = f"{request.hub.url}/{_prefix(kind)}{repo_id}"
    if (kind, repo_id) in request.hub.repositories:
        request.answer({"error": "You already created this repo", "url": url, "id": repo_id}, status=409)
        return
    private = bool(asked.get("private")) or asked.get("visibility") == "private"
    repository = request.hub.repositories[kind, repo_id] = Repository(repo_id, private)
    repository.commit({".gitattributes": Blob(b"*.safetensors filter=lfs diff=lfs merge=lfs -text\n", False)}, "init")
    request.answer({"url": url, "id": repo_id, "name": repo_id})


def _info(request: _Handler, kind: str, repo_id: str, revision: str | None = None) -> None:
    repository, commit = request.commit_at(kind, repo_id, revision)
    request.answer(
        {
            "_id": commit.sha[:24],
            "id": repo_id,
            "modelId": repo_id,
            "author": repo_id.split("/")[0],
            "sha": commit.sha,
            "private": repository.private,
            "gated": False,
            "disabled": False,
            "downloads": 0,
            "likes": 0,
            "tags": [],
            "lastModified": commit.date,
            "createdAt": commit.date,
            "siblings": [{"rfilename": path} for path in commit.files],
        }
    )


def _refs(request: _Handler, kind: str, repo_id: str) -> None:
    branches = request.repository(kind, repo_id).branches
    listed = [{"name": name, "ref": f"refs/heads/{name}", "targetCommit": sha} for name, sha in branches.items()]
    request.answer({"branches": listed, "converts": [], "tags": [], "pullRequests": []})


def _commits(request: _Handler, kind: str, repo_id: str, revision: str) -> None:
    repository, _ = request.commit_at(kind, repo_id, revision)
    request.answer(
        [
            {"id": c.sha, "title": c.title, "message": "", "date": c.date, "authors": [{"user": USER}]}
            for c in repository.history()
        ]
    )


# ----------------------------------------------------------------------------------------------------------- uploading


def _preupload(request: _Handler, kind: str, repo_id: str, revision: str) -> None:
    _, commit = request.commit_at(kind, repo_id, revision)
    answers = []
    for file in request.json()["files"]:
        lfs = file["path"].endswith(_LFS_SUFFIXES) or file["size"] > _LFS_BYTES
        known = commit.files.get(file["path"])
        answers.append(
            {
                "path": file["path"],
                "uploadMode": "lfs" if lfs else "regular",
                "shouldIgnore": False,
                "oid": known.etag if known else None,
            }
        )
    request.answer({"files": answers})


def _lfs_batch(request: _Handler, kind: str, repo_id: str) -> None:
    objects = []
    for asked in request.json()["objects"]:
        entry = {"oid": asked["oid"], "size": asked["size"]}
        if asked["oid"] not in request.hub.lfs_objects:
            base = f"{request.hub.url}/_lfs"
            entry["actions"] = {"upload": {"href": f"{base}/{asked['oid']}"}, "verify": {"href": f"{base}/verify"}}
        objects.append(entry)
    request.answer({"transfer": "basic", "objects": objects}, content_type="application/vnd.git-lfs+json")


def _lfs_put(request: _Handler, oid: str) -> None:
    if hashlib.sha256(request.body).hexdigest() != oid:
        request.refuse(400, "BadRequest", "the content does not have this sha256")
        return
    request.hub.lfs_objects[oid] = request.body
    request.answer()


def _lfs_verify(request: _Handler) -> None:
    asked = request.json()
    whole = len(request.hub.lfs_objects.get(asked["oid"], b"")) == asked["size"]
    request.answer({}, status=200 if whole else 404)


def _commit(request: _Handler, kind: str, repo_id: str, revision: str) -> None:
    repository, parent = request.commit_at(kind, repo_id, revision)
    files, header = dict(parent.files), {}
    for line in filter(None, request.body.splitlines()):
        operation = json.loads(line)
        value = operation["value"]
        match operation["key"]:
            case "header":
                header = value
            case "file":
                files[value["path"]] = Blob(base64.b64decode(value["content"]), lfs=False)
            case "lfsFile":
                files[value["path"]] = Blob(request.hub.lfs_objects[value["oid"]], lfs=True)
            case "deletedFile":
                del files[value["path"]]
    if header.get("parentCommit") not in (None, parent.sha):
        request.refuse(412, "PreconditionFailed", "A commit has happened since. Please refresh and try again.")
        return
    made = repository.commit(files, header.get("summary", ""), revision)
    url = f"{request.hub.url}/{_prefix(kind)}{repo_id}/commit/{made.sha}"
    request.answer({"success": True, "commitOid": made.sha, "commitUrl": url, "hookOutput": ""})


# --------------------------------------------------------------------------------------------------------- downloading


def _tree(request: _Handler, kind: str, repo_id: str, revision: str, path: str | None = None) -> None:
    _, commit = request.commit_at(kind, repo_id, revision)
    prefix = f"{path.rstrip('/')}/" if path else ""
    recursive = request.query.get("recursive", "").lower() in ("1", "true")
    found: dict[str, Any] = {}
    for name, blob in sorted(commit.files.items()):
        if not name.startswith(prefix):
            continue
        parts = name.removeprefix(prefix).split("/")
        for depth in range(1, len(parts) if recursive else min(len(parts), 2)):
            folder = prefix + "/".join(parts[:depth])
            found[folder] = _folder_entry(folder)
        if recursive or len(parts) == 1:
            found[name] = _file_entry(name, blob)
    if path and not found:
        raise _Missing("EntryNotFound", f"{path} does not exist on {revision}", {"X-Repo-Commit": commit.sha})
    request.answer(list(found.values()))


def _paths_info(request: _Handler, kind: str, repo_id: str, revision: str) -> None:
    _, commit = request.commit_at(kind, repo_id, revision)
    is_json = "json" in request.headers.get("Content-Type", "")
    asked = request.json()["paths"] if is_json else parse_qs(request.body.decode()).get("paths", [])
    found = []
    for path in (name.strip("/") for name in asked):
        if path in commit.files:
            found.append(_file_entry(path, commit.files[path]))
        elif not path or any(name.startswith(f"{path}/") for name in commit.files):
            found.append(_folder_entry(path))
    request.answer(found)


def _resolve(request: _Handler, kind: str, repo_id: str, revision: str, path: str) -> None:
    _, commit = request.commit_at(kind, repo_id, revision)
    blob = commit.files.get(path)
    if blob is None:
        raise _Missing("EntryNotFound", "Entry not found", {"X-Repo-Commit": commit.sha})
    headers = {"X-Repo-Commit": commit.sha, "ETag": f'"{blob.etag}"', "Accept-Ranges": "bytes"}
    if blob.lfs:
        headers |= {"X-Linked-Etag": f'"{blob.etag}"', "X-Linked-Size": str(len(blob.data))}
    data, status = blob.data, 200
    if asked := re.fullmatch(r"bytes=(\d+)-(\d*)", request.headers.get("Range") or ""):
        first, last = int(asked[1]), min(int(asked[2] or len(data) - 1), len(data) - 1)
        headers["Content-Range"] = f"bytes {first}-{last}/{len(data)}"
        data, status = data[first : last + 1], 206
    request.answer(data, status=status, content_type="application/octet-stream", headers=headers)


def _file_entry(path: str, blob: Blob) -> dict[str, Any]:
    entry = {"type": "file", "path": path, "size": len(blob.data), "oid": blob.git_oid}
    if blob.lfs:
        entry["lfs"] = {"oid": blob.sha256, "size": len(blob.data), "pointerSize": 130}
    return entry


def _folder_entry(path: str) -> dict[str, Any]:
    return {"type": "directory", "path": path, "size": 0, "oid": hashlib.sha1(path.encode()).hexdigest()}


def _prefix(kind: str) -> str:
    return "" if kind == "model" else f"{kind}s/"


# -------------------------------------------------------------------------------------------------------------- routes

_Route = tuple[str, re.Pattern[str], Callable[..., None]]
_ID = r"(?P<repo_id>[^/]+/[^/]+)"
_API = rf"/api/(?P<kind>model|dataset)s/{_ID}"
_REVISION = r"(?P<revision>[^/]+)"


def _routes() -> list[_Route]:
    routes: list[tuple[str, str, Callable[..., None]]] = [
        ("GET", "/api/whoami-v2", _who_am_i),
        ("POST", "/api/validate-yaml", _validate_yaml),
        ("POST", "/api/repos/create", _create),
        ("POST", f"{_API}/preupload/{_REVISION}", _preupload),
        ("POST", f"{_API}/commit/{_REVISION}", _commit),
        ("GET", _API, _info),
        ("GET", f"{_API}/revision/{_REVISION}", _info),
        ("GET", f"{_API}/tree/{_REVISION}(?:/(?P<path>.*))?", _tree),
        ("POST", f"{_API}/paths-info/{_REVISION}", _paths_info),
        ("GET", f"{_API}/refs", _refs),
        ("GET", f"{_API}/commits/{_REVISION}", _commits),
        ("PUT", "/_lfs/(?P<oid>[0-9a-f]{64})", _lfs_put),
        ("POST", "/_lfs/verify", _lfs_verify),
        *local_collections.ROUTES,
    ]
    for kind in ("dataset", "model"):  # a model's address has no prefix, so it comes last
        base = rf"/{_prefix(kind)}{_ID}"
        routes += [
            ("POST", rf"{base}\.git/info/lfs/objects/batch", _with_kind(_lfs_batch, kind)),
            ("GET", rf"{base}/resolve/{_REVISION}/(?P<path>.+)", _with_kind(_resolve, kind)),
        ]
    return [(method, re.compile(pattern), function) for method, pattern, function in routes]


def _with_kind(function: Callable[..., None], kind: str) -> Callable[..., None]:
    def call(request: _Handler, **arguments: str) -> None:
        function(request, kind=kind, **arguments)

    return call


_ROUTES = _routes()
