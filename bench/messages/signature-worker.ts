import { parentPort } from 'node:worker_threads';
import { recoverPersonalSigner } from '@skerry/protocol';

/** Takes bodies, makes them ready, and on 'go' recovers each one's signer and nothing else. */
let checks: (() => unknown)[] = [];

parentPort!.on('message', (given: Uint8Array[] | 'go') => {
  if (given !== 'go') {
    checks = given.map((body) => {
      const text = new TextDecoder().decode(body);
      const { message, signature } = JSON.parse(text) as { message: unknown; signature: string };
      const signedText = JSON.stringify(message);
      return () => recoverPersonalSigner(signedText, signature);
    });
  } else for (const check of checks) check();
  parentPort!.postMessage('done');
});
