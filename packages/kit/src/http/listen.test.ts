import assert from 'node:assert/strict';
import { Server } from 'node:net';
import { test } from 'node:test';
import type { AppError } from '@skerry/protocol';
import { defineConfig, settings } from '../daemon/config.ts';
import { createLogger } from '../daemon/log.ts';
import { nameListenSetting } from '../daemon/service.ts';
import { checkPort, explainListenFailure, listen } from './listen.ts';
import { createHttpServer } from './server.ts';

const log = createLogger('test', 'fatal');

test('a port that is taken is named, and the setting that moves it', async (t) => {
  const [first, second] = [await createHttpServer({ log }), await createHttpServer({ log })];
  t.after(() => Promise.all([first.close(), second.close()]));
  const port = Number(new URL(await listen(first, '127.0.0.1', 0)).port);
  const error = await listen(second, '127.0.0.1', port).catch((failure: unknown) => failure);
  const spec = defineConfig('SKERRY_X', {
    httpPort: settings.port(8080, 'port for plain HTTP'),
    httpsPort: settings.port(8443, 'port for TLS'),
    attempts: settings.integer(0, 65_535, 0, 'no port'),
  });
  const told = nameListenSetting(error, spec, { httpPort: port, httpsPort: port + 1, attempts: port });
  const { code, message } = told as { readonly code: string; readonly message: string };
  assert.deepEqual(
    { code, message },
    {
      code: 'PORT_IN_USE',
      message: `port ${port} of 127.0.0.1 is in use; choose another with SKERRY_X_HTTP_PORT (port for plain HTTP)`,
    },
  );
  const other = new Error('its database is away');
  assert.equal(nameListenSetting(other, spec, { httpPort: port, httpsPort: 0, attempts: 0 }), other);
});

test('a host that is none is named with its setting, and is for the operator to change', async (t) => {
  const app = await createHttpServer({ log });
  t.after(() => app.close());
  const spec = defineConfig('SKERRY_X', { host: settings.host(), name: settings.text('', 'no host') });
  for (const host of ['a..b', 'fe80::1']) {
    const error = await listen(app, host, 0).catch((failure: unknown) => failure);
    const told = nameListenSetting(error, spec, { host, name: host }) as AppError;
    assert.deepEqual([told.code, told.kind], ['INVALID_CONFIG', 'invalid'], host);
    assert.match(told.message, /^cannot listen on .*; choose another with SKERRY_X_HOST \([^)]*\)$/);
  }
  // A name server may come back.
  const away = Object.assign(new Error('EAI_AGAIN'), { code: 'EAI_AGAIN', hostname: 'a.example' });
  const { code, kind } = explainListenFailure(away) as AppError;
  assert.deepEqual([code, kind], ['UPSTREAM_UNAVAILABLE', 'unavailable']);
});

test('an address that this machine does not have is said', async (t) => {
  const app = await createHttpServer({ log });
  t.after(() => app.close());
  await assert.rejects(listen(app, '192.0.2.1', 0), {
    code: 'PORT_IN_USE',
    message: /cannot listen on 192\.0\.2\.1: this computer does not have the address/,
  });
});

test('every address of a machine whose kernel has no IPv6 is every one of IPv4', async (t) => {
  const app = await createHttpServer({ log });
  t.after(() => app.close());
  const { listen: real } = Server.prototype;
  t.mock.method(Server.prototype, 'listen', function (this: Server, ...args: [{ host?: string }]) {
    if (args[0].host !== '::') return real.apply(this, args);
    const failure = Object.assign(new Error('listen EAFNOSUPPORT ::'), { code: 'EAFNOSUPPORT' });
    process.nextTick(() => this.emit('error', failure));
    return this;
  });
  await checkPort('::', 0);
  await listen(app, '::', 0);
  const { address } = app.server.address() as { address: string };
  assert.equal(address, '0.0.0.0');
});
