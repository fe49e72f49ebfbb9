import { createHash } from 'node:crypto';
import { Agent, type IncomingHttpHeaders, request } from 'node:http';
import { buffer } from 'node:stream/consumers';
import type { Signer } from '@skerry/client';

/** Requests from an address of one's own choice, so that a node tells the population's clients apart. */

export interface Asked {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

export interface Question {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array;
}

const TIMEOUT_MS = 60_000;
const SOCKETS_MAX = 32;

/** Somebody at an address of this namespace. */
export interface Caller extends Disposable {
  readonly address: string;
  ask(url: string, question?: Question): Promise<Asked>;
  askJson<T>(url: string, question?: Question): Promise<T>;
}

export function createCaller(address: string): Caller {
  const agent = new Agent({ keepAlive: true, maxSockets: SOCKETS_MAX });
  const ask = async (url: string, { method = 'GET', headers = {}, body }: Question = {}): Promise<Asked> => {
    const answer = Promise.withResolvers<Asked>();
    const sent = request(
      url,
      { method, agent, localAddress: address, headers, signal: AbortSignal.timeout(TIMEOUT_MS) },
      (response) => {
        buffer(response).then(
          (bytes) => answer.resolve({ status: response.statusCode!, headers: response.headers, body: bytes }),
          answer.reject,
        );
      },
    );
    sent.on('error', answer.reject);
    sent.end(body);
    return answer.promise;
  };
  return {
    address,
    ask,
    async askJson<T>(url: string, question?: Question) {
      const { status, body } = await ask(url, question);
      if (status >= 300) throw new Error(`${url} answered ${status}: ${body.toString().slice(0, 300)}`);
      return JSON.parse(body.toString()) as T;
    },
    [Symbol.dispose]: () => agent.destroy(),
  };
}

export const postJson = (body: string): Question => ({
  method: 'POST',
  headers: { 'content-type': 'application/json' },
  body,
});

/** A form with files, as bytes with their content type. */
export async function postForm(form: FormData): Promise<Question> {
  const encoded = new Response(form);
  const headers = { 'content-type': encoded.headers.get('content-type')! };
  return { method: 'POST', headers, body: new Uint8Array(await encoded.arrayBuffer()) };
}

/** What stores a file as its owner's. */
export async function storeQuestion(
  signer: Signer,
  bytes: Uint8Array<ArrayBuffer>,
): Promise<{ hash: string; question: Question }> {
  const hash = createHash('sha256').update(bytes).digest('hex');
  const form = new FormData();
  form.set('address', signer.address);
  form.set('signature', signer.sign(hash));
  form.set('file', new Blob([bytes]), 'file.bin');
  return { hash, question: await postForm(form) };
}

/** The code of a refusal, or the status where the answer names none. */
export function codeOf({ status, body }: Asked): string {
  try {
    const { code } = JSON.parse(body.toString()) as { code?: unknown };
    return typeof code === 'string' ? code : String(status);
  } catch {
    return String(status);
  }
}
