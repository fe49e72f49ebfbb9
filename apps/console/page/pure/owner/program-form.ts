import { PROGRAM_SIZES } from '@skerry/protocol/content/sizes';
import { numberIn, rangeText } from './range.ts';

/** Programs to begin with, and what is typed to make one. */

export interface Example {
  readonly title: string;
  readonly name: string;
  readonly runtime: 'nodejs' | 'python3';
  readonly code: string;
  /** What it is run with. */
  readonly variables: string;
}

export const EXAMPLES: readonly Example[] = [
  {
    title: 'Hello, in Python',
    name: 'hello.py',
    runtime: 'python3',
    variables: 'name=Ada',
    code: `def main(variables, request):
    name = variables.get("name", "world")
    print("greeted", name)  # into its log
    return {"hello": name}
`,
  },
  {
    title: 'Hello, in JavaScript',
    name: 'hello.mjs',
    runtime: 'nodejs',
    variables: 'name=Ada',
    code: `export default function main(variables) {
  return { hello: variables.name ?? 'world' };
}
`,
  },
  {
    title: 'Prime numbers',
    name: 'primes.py',
    runtime: 'python3',
    variables: 'below=100',
    code: `def main(variables, request):
    below = int(variables.get("below", 100))
    if below > 100000:
        raise ValueError("ask for less than 100000")
    sieve = bytearray([1]) * max(below, 2)
    sieve[0:2] = b"\\0\\0"
    for n in range(2, int(below ** 0.5) + 1):
        if sieve[n]:
            sieve[n * n :: n] = bytes(len(range(n * n, len(sieve), n)))
    return {"primes": [n for n in range(below) if sieve[n]]}
`,
  },
  {
    title: 'A counter that stays in memory',
    name: 'counter.mjs',
    runtime: 'nodejs',
    variables: '',
    code: `// A warm program keeps what it has in memory; a cold one begins anew.
let calls = 0;

export default function main() {
  calls += 1;
  return { calls };
}
`,
  },
  {
    title: 'A whole web application',
    name: 'app.py',
    runtime: 'python3',
    variables: '',
    code: `# WSGI: open /vm/HASH/ on a compute node in a browser.
def app(environ, start_response):
    start_response("200 OK", [("content-type", "text/plain; charset=utf-8")])
    return [f"You asked for {environ['PATH_INFO'] or '/'}\\n".encode()]
`,
  },
];

export const RUNTIMES = ['python3', 'nodejs'] as const;

/** What is typed to publish a program. */
export interface ProgramForm {
  readonly name: string;
  readonly runtime: string;
  readonly code: string;
  /** MiB. */
  readonly memory: string;
  /** Seconds. */
  readonly timeout: string;
}

/** The content of the message, or the first thing that is wrong. */
export function readProgramForm(
  form: ProgramForm,
): { readonly content: Readonly<Record<string, unknown>> } | { readonly fault: string } {
  const { name, runtime, code } = form;
  const memory = numberIn(PROGRAM_SIZES.memory, form.memory);
  const timeout = numberIn(PROGRAM_SIZES.timeout, form.timeout);
  if (name.trim() === '') return { fault: 'A program has a name.' };
  if (!memory) return { fault: `The memory is ${rangeText(PROGRAM_SIZES.memory, 'MiB')}.` };
  if (!timeout) return { fault: `The time of a call is ${rangeText(PROGRAM_SIZES.timeout, 'seconds')}.` };
  return { content: { name: name.trim(), runtime, code, memory, timeout } };
}

/** Lines of `name=value`. A value that is JSON is read as such, anything else is text. Undefined where a line is neither. */
export function readVariables(lines: string): Readonly<Record<string, unknown>> | undefined {
  const pairs = lines.split('\n').filter((line) => line.trim() !== '');
  if (pairs.some((line) => line.indexOf('=') < 1)) return undefined;
  return Object.fromEntries(
    pairs.map((line) => {
      const [name, value] = [line.slice(0, line.indexOf('=')).trim(), line.slice(line.indexOf('=') + 1)];
      try {
        return [name, JSON.parse(value) as unknown];
      } catch {
        return [name, value];
      }
    }),
  );
}
