import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { gatewayService } from '@skerry/gateway';
import { createLogger, readConfig } from '@skerry/kit';
import { hostnameOf, type ItemHash } from '@skerry/protocol';
import type { Context } from '../context.ts';
import { createOutput } from '../output/output.ts';
import { writeGatewayTable } from '../testing/gateway-table.ts';
import { createTestDir } from '../testing/run.ts';
import { run, SKERRY } from '../testing/shell.ts';
import { whyDomain } from './host-names.ts';

const hashOf = (digits: string) => digits.padEnd(64, '0') as ItemHash;
const [SCHEDULED, STARTING, STOPPED, CLOSED] = ['1', '2', '3', '4'].map((digit) => hashOf(digit.repeat(11)));
/** The same 44 bits, so the same name. */
const [FIRST, LATER] = [hashOf('5'.repeat(11)), hashOf(`${'5'.repeat(11)}1`)];
const UNKNOWN = hashOf('6'.repeat(11));
/** Nothing listens there. */
const CLOSED_PORT = '9';

test('domain why says the first thing that is missing', async () => {
  await using home = await createTestDir();
  const dataDir = join(home.path, 'gateway');
  await writeGatewayTable(dataDir, [
    {
      instance_id: SCHEDULED!,
      ipv6: '',
      phase: 'scheduled',
      reason: { code: 'NO_CAPACITY', message: 'no node has room' },
    },
    { instance_id: STARTING!, phase: 'starting' },
    { instance_id: STOPPED!, desired: 'stopped', phase: 'stopped' },
    { instance_id: CLOSED! },
    { instance_id: FIRST!, created_at: 1000 },
    { instance_id: LATER!, created_at: 2000 },
  ]);
  const config = readConfig(gatewayService.config, {
    SKERRY_GATEWAY_DATA_DIR: dataDir,
    SKERRY_GATEWAY_CACHE_DIR: dataDir,
    SKERRY_GATEWAY_DOMAIN: 'apps.test',
    SKERRY_GATEWAY_DATA_PLANE: 'typescript',
    SKERRY_GATEWAY_HTTP_PORT: '0',
    SKERRY_GATEWAY_HTTPS_PORT: '0',
    SKERRY_GATEWAY_API_PORT: '0',
    SKERRY_GATEWAY_UPSTREAM_HTTP_PORT: CLOSED_PORT,
    SKERRY_GATEWAY_UPSTREAM_HTTPS_PORT: CLOSED_PORT,
    SKERRY_GATEWAY_ALLOW_LOCAL: 'yes',
    SKERRY_GATEWAY_CORE_URL: 'http://127.0.0.1:9',
  });
  const log = createLogger('gateway', 'silent');
  await using gateway = await gatewayService.start(config, { log, signal: new AbortController().signal });
  const gatewayUrl = gateway.urls[2]!;
  const plain = createOutput(process.stdout, process.stderr, { json: false, colours: false });
  const why = async (subject: string) => {
    let said = '';
    const result = (_: unknown, text: string) => {
      said = text;
    };
    await whyDomain(
      { findService: async () => gatewayUrl, output: { ...plain, result } } as unknown as Context,
      subject,
    );
    return said;
  };
  const name = (hash: ItemHash | undefined) => hostnameOf(hash!);
  const cases: [situation: string, subject: string, verdict: RegExp, step: RegExp][] = [
    ['unknown', name(UNKNOWN), /does not answer: no instance .* has the name/, /MISSING +message/],
    ['scheduled', name(SCHEDULED), /"scheduled": no node has room/, /MISSING +allocation/],
    ['starting', name(STARTING), /its last known phase is "starting"/, /MISSING +phase/],
    ['stopped', name(STOPPED), /it is stopped by its owner/, /MISSING +desired/],
    ['port closed', name(CLOSED), /port 9: refused/, /MISSING +connection/],
    [
      'collision lost',
      LATER!,
      new RegExp(`collision lost: ${FIRST} has the name: the earlier one`),
      /MISSING +name/,
    ],
  ];
  for (const [situation, subject, verdict, step] of cases) {
    const said = await why(subject);
    assert.match(said.split('\n')[0]!, verdict, situation);
    assert.match(said.split('\n').find((line) => line.includes('MISSING'))!, step, situation);
  }
  // The gateway also says below which domain names are, and where it listens.
  const named = await run(process.execPath, [SKERRY, 'domain', 'name', STOPPED!, '--gateway', gatewayUrl]);
  assert.deepEqual([named.stdout.trim(), named.stderr], [`${name(STOPPED)}.apps.test`, '']);
  // The same by the command itself.
  const args = [SKERRY, 'domain', 'why', name(STOPPED), '--gateway', gatewayUrl];
  assert.equal((await run(process.execPath, args)).stdout, await why(name(STOPPED)));
});
