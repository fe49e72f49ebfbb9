// Runs inside the sandbox: programs in WebAssembly, as commands of WASI preview 1. Each call is a new instance.
import { closeSync, ftruncateSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import { WASI } from 'node:wasi';
import { answerOfOutput, receive, send } from './channel.mjs';

const IN = '/tmp/.stdin';
const OUT = '/tmp/.stdout';
const ERRORS = '/tmp/.stderr';
const TRACEBACK_CHARS = 32_768;

let code;
let compiled;

/** The request as variables of the environment, by the names of RFC 3875 (CGI), section 4.1. */
function environmentOf({ method, path, query, headers }, body) {
  return {
    ...code.head.environment,
    REQUEST_METHOD: method,
    PATH_INFO: path,
    QUERY_STRING: query,
    CONTENT_TYPE: headers['content-type'] ?? '',
    CONTENT_LENGTH: String(body.length),
  };
}

/** Binary, or its base64: a message's text can hold nothing else. */
function bytesOf(body) {
  return body.subarray(0, 4).toString('latin1') === '\0asm'
    ? body
    : Buffer.from(body.toString('utf8').trim(), 'base64');
}

async function run(head, body) {
  compiled ??= await WebAssembly.compile(bytesOf(code.body));
  const input = head.isRun ? Buffer.from(JSON.stringify(head.variables)) : body;
  writeFileSync(IN, input);
  const [stdin, stdout, stderr] = [openSync(IN, 'r'), openSync(OUT, 'w+'), openSync(ERRORS, 'w+')];
  try {
    // No directory is opened for it: each instance would hold that open until the garbage is collected.
    const wasi = new WASI({
      version: 'preview1',
      args: ['program'],
      env: environmentOf(head, input),
      ...{ stdin, stdout, stderr },
      returnOnExit: true,
    });
    const instance = await WebAssembly.instantiate(compiled, wasi.getImportObject());
    const exitCode = wasi.start(instance);
    const complaint = readFileSync(ERRORS);
    process.stderr.write(complaint);
    if (exitCode !== 0) {
      const traceback = `${complaint.toString('utf8')}\nthe program ended with exit code ${exitCode}`;
      return send({ kind: 'failed', traceback: traceback.trim().slice(-TRACEBACK_CHARS) });
    }
    const { status, headers, body: bytes } = answerOfOutput(readFileSync(OUT));
    send({ kind: 'answer', status, headers }, bytes);
  } finally {
    ftruncateSync(stdout);
    for (const file of [stdin, stdout, stderr]) closeSync(file);
  }
}

receive((head, body) => {
  if (head.kind === 'load') code = { head, body: Buffer.from(body) };
  else if (head.kind === 'call')
    run(head, Buffer.from(body)).catch((error) =>
      send({ kind: 'failed', traceback: String(error?.stack ?? error).slice(0, TRACEBACK_CHARS) }),
    );
});
send({ kind: 'ready' });
