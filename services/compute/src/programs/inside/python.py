"""Runs inside the sandbox: programs in Python. docs/programs.md says what a program may be."""

import io
import json
import os
import sys

CHANNEL = 3
# Where Debian's packages put libraries. The standard library comes first, the program's own files before that.
LIBRARIES = "/usr/lib/python3/dist-packages"
DIRECTORY = "/tmp/program"
TRACEBACK_CHARS = 32_768


def read_exactly(count):
    parts = []
    while count > 0:
        part = os.read(CHANNEL, min(count, 1 << 20))
        if not part:
            os._exit(0)
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


def receive():
    prefix = read_exactly(8)
    head = json.loads(read_exactly(int.from_bytes(prefix[:4], "big")))
    return head, read_exactly(int.from_bytes(prefix[4:], "big"))


def json_of(value):
    """Python would also write NaN and Infinity, which no other reader of JSON takes."""
    return json.dumps(value, allow_nan=False).encode()


def send(head, body=b""):
    text = json_of(head)
    data = memoryview(len(text).to_bytes(4, "big") + len(body).to_bytes(4, "big") + text + body)
    while data:
        data = data[os.write(CHANNEL, data) :]


# Fields that WSGI gives names of their own.
OWN_NAMES = ("content-type", "content-length")
TEXT = {"content-type": "text/plain; charset=utf-8"}
JSON = {"content-type": "application/json"}


def answer_of(value):
    if isinstance(value, str):
        return 200, TEXT, value.encode()
    if isinstance(value, (bytes, bytearray)):
        return 200, {"content-type": "application/octet-stream"}, bytes(value)
    return 200, JSON, json_of(value)


def refuse_constant(name):
    raise ValueError(f"{name} is not JSON")


def answer_of_output(text):
    try:
        json.loads(text, parse_constant=refuse_constant)
        return 200, JSON, text.encode()
    except (ValueError, RecursionError):
        return 200, TEXT, text.encode("utf-8", "replace")


class Asgi:
    """An application of the ASGI specification, version 3: protocols http and lifespan."""

    def __init__(self, app):
        import asyncio

        self.app = app
        self.asyncio = asyncio
        self.loop = asyncio.new_event_loop()
        asyncio.set_event_loop(self.loop)
        self.state = {}
        self.loop.run_until_complete(self.start())

    async def start(self):
        self.to_app = self.asyncio.Queue()
        from_app = self.asyncio.Queue()
        await self.to_app.put({"type": "lifespan.startup"})
        scope = {"type": "lifespan", "asgi": {"version": "3.0"}, "state": self.state}
        task = self.loop.create_task(self.app(scope, self.to_app.get, from_app.put))
        self.lifespan = task
        told = self.loop.create_task(from_app.get())
        await self.asyncio.wait({task, told}, return_when=self.asyncio.FIRST_COMPLETED)
        # An application that knows no lifespan raises; it works without.
        if task.done():
            task.exception()
            told.cancel()
        elif told.result()["type"] == "lifespan.startup.failed":
            raise RuntimeError(told.result().get("message", "the start of the application failed"))

    def __call__(self, head, body):
        # An application of the deployed SDK (AlephApp) has handlers of its own for messages.
        takes_messages = isinstance(getattr(self.app, "event_handlers", None), list)
        if head.get("trigger") == "message" and takes_messages:
            return self.loop.run_until_complete(self.answer_message(body))
        return self.loop.run_until_complete(self.answer(head, body))

    def wait_for(self, function):
        """Lets what the application began go on meanwhile."""
        return self.loop.run_until_complete(self.loop.run_in_executor(None, function))

    async def answer_message(self, body):
        kind, results = "aleph.message", []

        async def receive_event():
            return {"type": kind, "body": body, "more_body": False}

        async def send_event(event):
            results.append(event)

        await self.app({"type": kind, "body": body.decode()}, receive_event, send_event)
        return answer_of(results[-1] if results else None)

    async def answer(self, head, body):
        from urllib.parse import unquote

        status, headers, parts = 500, {}, []
        sent = False

        async def receive_event():
            nonlocal sent
            if sent:
                await self.loop.create_future()
            sent = True
            return {"type": "http.request", "body": body, "more_body": False}

        async def send_event(event):
            nonlocal status, headers
            if event["type"] == "http.response.start":
                status = event["status"]
                headers = {k.decode("latin1"): v.decode("latin1") for k, v in event.get("headers", [])}
            elif event["type"] == "http.response.body":
                parts.append(bytes(event.get("body", b"")))

        scope = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1",
            "method": head["method"],
            "scheme": "http",
            "path": unquote(head["path"]),
            "raw_path": head["path"].encode(),
            "query_string": head["query"].encode(),
            "root_path": "",
            "headers": [(k.encode("latin1"), v.encode("latin1")) for k, v in head["headers"].items()],
            "server": ("program", 80),
            "client": None,
            "state": dict(self.state),
        }
        await self.app(scope, receive_event, send_event)
        return status, headers, b"".join(parts)


class Wsgi:
    """An application of WSGI (PEP 3333)."""

    def __init__(self, app):
        self.app = app

    def environ(self, head, body):
        from urllib.parse import unquote_to_bytes

        headers = head["headers"]
        return {
            "REQUEST_METHOD": head["method"],
            "SCRIPT_NAME": "",
            "PATH_INFO": unquote_to_bytes(head["path"]).decode("latin1"),
            "QUERY_STRING": head["query"],
            "CONTENT_TYPE": headers.get("content-type", ""),
            "CONTENT_LENGTH": str(len(body)),
            "SERVER_NAME": "program",
            "SERVER_PORT": "80",
            "SERVER_PROTOCOL": "HTTP/1.1",
            "wsgi.version": (1, 0),
            "wsgi.url_scheme": "http",
            "wsgi.input": io.BytesIO(body),
            "wsgi.errors": sys.stderr,
            "wsgi.multithread": False,
            "wsgi.multiprocess": True,
            "wsgi.run_once": False,
        } | {"HTTP_" + name.upper().replace("-", "_"): value for name, value in headers.items() if name not in OWN_NAMES}

    def __call__(self, head, body):
        started, parts = [], []

        def start_response(status, headers, error=None):
            started[:] = [int(status.split()[0]), dict(headers)]
            return parts.append

        result = self.app(self.environ(head, body), start_response)
        try:
            parts.extend(result)
        finally:
            if hasattr(result, "close"):
                result.close()
        status, headers = started
        return status, headers, b"".join(parts)


class Function:
    """A function of the variables, and of the request where it takes that too."""

    def __init__(self, function):
        import types

        self.function = function
        code = getattr(function, "__code__", None)
        bound = 1 if isinstance(function, types.MethodType) else 0
        self.takes = 2 if code is None or code.co_flags & 0x04 else min(2, code.co_argcount - bound)

    def __call__(self, head, body):
        request = {name: head[name] for name in ("method", "path", "query", "headers")} | {"body": body}
        value = self.function(*[head["variables"], request][: self.takes])
        if hasattr(value, "__await__"):
            import asyncio

            value = asyncio.run(value)
        return answer_of(value)


def is_asgi(app):
    for one in (app, getattr(app, "__call__", None)):
        if getattr(getattr(one, "__code__", None), "co_flags", 0) & 0x80:
            return True
    return False


def is_wsgi(app):
    for one in (app, getattr(app, "__call__", None)):
        code = getattr(one, "__code__", None)
        if code is not None and "start_response" in code.co_varnames[: code.co_argcount]:
            return True
    return False


def find_answer(namespace, name):
    chosen = namespace.get(name) if name else None
    for one in (chosen, namespace.get("app"), namespace.get("application")):
        if callable(one) and is_asgi(one):
            return Asgi(one)
        if callable(one) and is_wsgi(one):
            return Wsgi(one)
    for one in (chosen, namespace.get("main"), namespace.get("handler")):
        if callable(one):
            return Function(one)
    if name:
        raise AttributeError(f"the program has no {name}")
    return None


def run_text(text, variables):
    import types

    module = types.ModuleType("program")
    module.__file__ = "program.py"
    module.variables = variables
    sys.modules["program"] = module
    exec(compile(text, "program.py", "exec"), module.__dict__)
    return module.__dict__


def unpack_squashfs(body):
    import subprocess

    path = DIRECTORY + ".squashfs"
    with open(path, "wb") as file:
        file.write(body)
    options = ["-quiet", "-no-progress", "-no-xattrs", "-processors", "1", "-force"]
    done = subprocess.run(["/usr/bin/unsquashfs", *options, "-dest", DIRECTORY, path], capture_output=True, text=True)
    os.unlink(path)
    if done.returncode != 0:
        raise ImportError(f"the archive cannot be unpacked: {done.stderr.strip()}")


def unpack_zip(body):
    import zipfile

    with zipfile.ZipFile(io.BytesIO(body)) as archive:
        archive.extractall(DIRECTORY)


def run_package(entrypoint):
    import importlib

    sys.path.insert(0, DIRECTORY)
    names = [entrypoint.split(":")[0]] if entrypoint else ["main", "app", "program"]
    for name in names:
        path = os.path.join(DIRECTORY, *name.split("."))
        if entrypoint or os.path.exists(path + ".py") or os.path.isdir(path):
            return importlib.import_module(name).__dict__
    raise ImportError("the archive has no main.py, app.py or program.py")


def load(code, variables):
    head, body = code
    entrypoint = head["entrypoint"] or ""
    name = entrypoint.split(":")[1] if ":" in entrypoint else None
    if head["encoding"] != "plain":
        (unpack_zip if head["encoding"] == "zip" else unpack_squashfs)(body)
        namespace = run_package(entrypoint)
    else:
        namespace = run_text(body.decode("utf-8"), variables)
    return find_answer(namespace, name)


def describe(error, source):
    try:
        return format_traceback(error, source)
    except Exception:
        # Nothing is left to read the lines with: memory, files.
        return f"{type(error).__name__}: {error}"


def format_traceback(error, source):
    import linecache
    import traceback

    if source is not None:
        linecache.cache["program.py"] = (len(source), None, source.splitlines(True), "program.py")
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename == __file__:
        trace = trace.tb_next
    return "".join(traceback.format_exception(type(error), error, trace))[-TRACEBACK_CHARS:]


def next_frame(code, answer):
    # Until there is a request, tasks of an application that is kept running go on.
    if isinstance(answer, Asgi) and code[0].get("isKept"):
        return answer.wait_for(receive)
    return receive()


def serve():
    sys.path.append(LIBRARIES)
    code = None
    answer = None
    is_loaded = False
    send({"kind": "ready"})
    while True:
        head, body = next_frame(code, answer)
        if head["kind"] == "load":
            code = (head, body)
            os.environ.update(head["environment"])
            continue
        try:
            output = None
            if not is_loaded:
                output = sys.stdout = io.StringIO()
                try:
                    answer = load(code, head.get("variables", {}))
                except SystemExit as end:
                    if end.code not in (None, 0):
                        raise RuntimeError(f"the program ended with exit code {end.code}") from None
                finally:
                    sys.stdout = sys.__stdout__
                is_loaded = True
                if answer is not None:
                    sys.stdout.write(output.getvalue())
            if answer is None:
                status, headers, result = answer_of_output(output.getvalue())
            elif head["kind"] == "start":
                status, headers, result = answer_of(None)
            else:
                status, headers, result = answer(head, body)
            sys.stdout.flush()
            send({"kind": "answer", "status": status, "headers": headers, "isFinal": answer is None}, result)
        except BaseException as error:
            is_plain = code[0]["encoding"] == "plain"
            source = code[1].decode("utf-8", "replace") if is_plain else None
            sys.stdout.flush()
            is_final = not is_loaded or isinstance(error, (SystemExit, KeyboardInterrupt))
            send({"kind": "failed", "traceback": describe(error, source), "isFinal": is_final})


serve()
