// Runs inside the sandbox: programs in JavaScript. docs/programs.md says what a program may be.
import { existsSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import vm from 'node:vm';
import { answerOf, answerOfOutput, channel, receive, send } from './channel.mjs';
import { unpack } from './zip.mjs';

const DIRECTORY = '/tmp/program';
const OUTPUT_BYTES = 9 * 1024 * 1024;

let code;
/** How calls are answered once the code was run: a function of variables, or one of a Request. undefined: it is a script. */
let answer;
let isLoaded = false;
let isBusy = false;

const output = { chunks: [], sizeBytes: 0 };
const writeOut = process.stdout.write.bind(process.stdout);
function collect(chunk, encoding, done) {
  const bytes =
    typeof chunk === 'string' ? Buffer.from(chunk, typeof encoding === 'string' ? encoding : 'utf8') : chunk;
  if (output.sizeBytes < OUTPUT_BYTES) output.chunks.push(bytes);
  output.sizeBytes += bytes.length;
  const callback = typeof encoding === 'function' ? encoding : done;
  if (callback) process.nextTick(callback);
  return true;
}

function finish(head, body) {
  if (!isBusy) return;
  isBusy = false;
  send(head, body);
}
const succeed = ({ status, headers, body }, isFinal = false) =>
  finish({ kind: 'answer', status, headers, isFinal }, body);
function fail(error, isFinal = false) {
  const stack = error instanceof Error ? (error.stack ?? String(error)) : `Uncaught ${String(error)}`;
  const own = stack
    .split('\n')
    .filter((line) => !line.includes('file:///skerry/') && !line.includes('(node:'));
  finish({ kind: 'failed', traceback: own.join('\n').slice(0, 32_768), isFinal: isFinal || !isLoaded });
}
const succeedByOutput = () => succeed(answerOfOutput(Buffer.concat(output.chunks)), true);

const isFunction = (value) => typeof value === 'function';
function findAnswer(exported, name) {
  const own = exported ?? {};
  const chosen = name === undefined ? undefined : (own[name] ?? own.default?.[name]);
  const fallback = own.default;
  const fetch = [chosen, fallback, own, fallback?.default].find((one) => isFunction(one?.fetch));
  if (fetch) return (call) => answerRequest((request) => fetch.fetch(request), call);
  const run = [chosen, own.main, own.handler, fallback?.main, fallback?.handler, fallback, own].find(
    isFunction,
  );
  return run && ((call) => answerCall(run, call));
}

async function answerCall(run, call) {
  const { method, path, query, headers } = call.head;
  const value = await run(call.head.variables, { method, path, query, headers, body: call.body });
  return value instanceof Response ? answerOfResponse(value) : answerOf(value);
}
async function answerRequest(fetch, { head, body }) {
  const hasBody = head.method !== 'GET' && head.method !== 'HEAD' && body.length > 0;
  const request = new Request(`http://program${head.path}${head.query ? `?${head.query}` : ''}`, {
    method: head.method,
    headers: head.headers,
    ...(hasBody ? { body } : {}),
  });
  const response = await fetch(request);
  return response instanceof Response ? answerOfResponse(response) : answerOf(response);
}
async function answerOfResponse(response) {
  const body = Buffer.from(await response.arrayBuffer());
  return { status: response.status, headers: Object.fromEntries(response.headers), body };
}

/** A script is no module: top-level functions are global, and `module.exports` is there as well. */
function runScript(text) {
  const filename = `${DIRECTORY}.js`;
  const script = new vm.Script(text, {
    filename,
    importModuleDynamically: vm.constants.USE_MAIN_CONTEXT_DEFAULT_LOADER,
  });
  const module = { exports: {} };
  Object.assign(globalThis, { module, exports: module.exports, require: createRequire(filename) });
  script.runInThisContext();
  const find = (name) => vm.runInThisContext(`typeof ${name} === 'function' ? ${name} : undefined`);
  return isFunction(module.exports) || Object.keys(module.exports).length > 0
    ? module.exports
    : { main: find('main'), handler: find('handler') };
}

async function runText(text) {
  try {
    return runScript(text);
  } catch (error) {
    const isModule =
      error instanceof SyntaxError &&
      /import statement|import\.meta|export|await is only valid/.test(error.message);
    if (!isModule) throw error;
  }
  writeFileSync(`${DIRECTORY}.mjs`, text);
  return import(pathToFileURL(`${DIRECTORY}.mjs`));
}

const ENTRIES = ['index', 'main', 'app'];
const ENDINGS = ['', '.js', '.mjs', '.cjs'];

async function runPackage(bytes, entrypoint) {
  unpack(bytes, DIRECTORY);
  const names = entrypoint ? [entrypoint.split(':')[0]] : ENTRIES;
  for (const name of names)
    for (const ending of ENDINGS) {
      const path = join(DIRECTORY, name + ending);
      if (/\.[cm]?js$/.test(path) && existsSync(path)) return import(pathToFileURL(path));
    }
  throw new Error(`the archive has no ${names.map((name) => `${name}.js`).join(', ')}`);
}

async function load(variables) {
  globalThis.variables = variables;
  const { encoding, entrypoint } = code.head;
  const name = entrypoint?.split(':')[1];
  const exported = await (encoding === 'zip'
    ? runPackage(code.body, entrypoint)
    : runText(code.body.toString('utf8')));
  answer = findAnswer(exported, name);
  isLoaded = true;
}

async function call(frame) {
  isBusy = true;
  try {
    if (!isLoaded) {
      process.stdout.write = collect;
      await load(frame.head.variables ?? {});
      if (answer) {
        process.stdout.write = writeOut;
        for (const chunk of output.chunks) writeOut(chunk);
      }
    }
    // A script has answered when nothing is left for it to do.
    if (answer) succeed(frame.head.kind === 'start' ? answerOf(null) : await answer(frame));
    else channel.unref();
  } catch (error) {
    fail(error);
  }
}

process.on('beforeExit', () => {
  if (isBusy) succeedByOutput();
});
process.on('exit', (exitCode) => {
  if (!isBusy) return;
  if (exitCode === 0 || exitCode === undefined) succeedByOutput();
  else fail(new Error(`the program ended with exit code ${exitCode}`), true);
});
process.on('uncaughtException', (error) => fail(error, true));

receive((head, body) => {
  if (head.kind === 'load') {
    code = { head, body: Buffer.from(body) };
    Object.assign(process.env, head.environment);
  } else if (head.kind === 'call' || head.kind === 'start') void call({ head, body: Buffer.from(body) });
});
send({ kind: 'ready' });
