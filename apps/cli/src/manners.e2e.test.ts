import assert from 'node:assert/strict';
import { readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { call } from '@skerry/client';
import { creditService } from '@skerry/credit';
import { createLogger, readConfig } from '@skerry/kit';
import { until } from '@skerry/kit/testing/until';
import { CREDIT_API } from '@skerry/protocol/api/credit';
import { startCore } from './testing/core.ts';
import { startPerson } from './testing/person.ts';
import { createTestDir } from './testing/run.ts';

test('what a person meets beside the answer: names, prices, empty lists, keys', async (t) => {
  await using home = await createTestDir();
  const indexerFile = join(home.path, 'indexer.json');
  const quiet = { name: 'quiet', chain_id: 1, endpoints: ['http://127.0.0.1:9'] };
  await writeFile(indexerFile, JSON.stringify({ networks: [quiet], watches_per_owner: 1 }));
  await using core = await startCore(home.path, {
    SKERRY_CORE_ALLOCATION_WAIT_MS: '0',
    SKERRY_CORE_INDEXER_FILE: indexerFile,
  });
  const skerry = await startPerson(home.path, { SKERRY_CORE_URL: core.url });
  const made = JSON.parse((await skerry('key', 'new', '--json')).out) as { path: string; address: string };
  const countMessages = async () => {
    const { out } = await skerry('message', 'list', '--json', '--address', made.address);
    return (JSON.parse(out) as { messages: unknown[] }).messages.length;
  };

  await t.test('an empty list says so, and is JSON for programs', async () => {
    for (const [args, said] of [
      [['webhook', 'list'], 'no webhooks\n'],
      [['program', 'list'], 'no programs\n'],
      [['credit', 'costs'], 'nothing that costs anything\n'],
      [['message', 'list', '--address', made.address], 'no messages\n'],
    ] as const) {
      assert.deepEqual(await skerry(...args), { out: '', err: said, code: 0 });
      const { out, err } = await skerry(...args, '--json');
      assert.equal(err, '');
      assert.equal(typeof JSON.parse(out), 'object');
    }
  });

  await t.test('services that nobody names are not said to be down', async () => {
    const { code, out } = await skerry('status', '--json');
    const { services } = JSON.parse(out) as { services: { service: string; state: string }[] };
    const down = services.filter(({ state }) => state === 'down');
    assert.deepEqual([code, down], [0, []]);
  });

  await t.test('a name is refused before anything is signed', async () => {
    const bad = await skerry('instance', 'create', '--name', 'bad name!');
    assert.equal(bad.code, 2);
    assert.doesNotMatch(bad.err, /created/);
    assert.match(bad.err, /letters, digits, dots, hyphens.*"bad name!" \(INVALID_PARAMETERS\)/);
    assert.equal(await countMessages(), 0);
    const created = await skerry('instance', 'create', '--name', 'web');
    assert.equal(created.code, 0, created.err);
    assert.match(
      created.err,
      /credits an hour.*nothing is stopped when your credit is used up|no price is published/,
    );
    assert.match(created.out, /^status: scheduled/m);
    assert.doesNotMatch(created.out, /stopped/);
    const again = await skerry('instance', 'create', '--name', 'web', '--json');
    assert.equal(again.code, 1);
    const { code, hint } = JSON.parse(again.err) as { code: string; hint: string };
    assert.deepEqual([code, hint], ['NAME_IN_USE', 'choose another name, such as --name web-2']);
    assert.equal(await countMessages(), 1);
    const second = await skerry('instance', 'create', '--name', 'db', '--json');
    assert.equal(second.err, '');
    assert.equal((JSON.parse(second.out) as { message_status: string }).message_status, 'processed');
    assert.equal((await skerry('instance', 'update', 'db', '--name', 'web')).code, 1);
  });

  await t.test(
    'a custom domain is listed as soon as it is claimed, and only a claim is taken back',
    async () => {
      const { out } = await skerry('instance', 'show', 'web', '--json');
      const { instance_id: id } = JSON.parse(out) as { instance_id: string };
      const content = { 'www.example.org': { message_id: id, type: 'instance' }, 'old.example.org': null };
      const claims = JSON.stringify({ key: 'domains', content });
      assert.equal((await skerry('message', 'post', '--type', 'AGGREGATE', '--content', claims)).code, 0);
      const claimed = 'www.example.org is claimed, but no node has been chosen for the instance yet\n';
      assert.deepEqual(await skerry('domain', 'list', 'web'), { out: claimed, err: '', code: 0 });
      const listed = JSON.parse((await skerry('domain', 'list', 'web', '--json')).out) as object[];
      assert.deepEqual(listed, [
        {
          ...{ name: 'www.example.org', owner: made.address, item_hash: id, active: false },
          ...{ cname: 'unknown', owner_proof: 'unknown', rules: [] },
        },
      ]);

      for (const name of ['old.example.org', 'nothere.example.org']) {
        const never = await skerry('domain', 'detach', name);
        assert.deepEqual([never.out, never.code], ['', 3]);
        assert.match(never.err, /^error: you have not attached .*\(HOSTNAME_NOT_FOUND\)\n/);
      }
      assert.equal((await skerry('domain', 'detach', 'www.example.org')).code, 0);
      assert.equal((await skerry('domain', 'list', 'web')).err, 'no custom domains\n');
    },
  );

  await t.test('who asks a gateway for a custom domain is told where to look', async () => {
    for (const ask of ['why', 'lookup']) {
      const { err, code } = await skerry('domain', ask, 'www.example.org');
      assert.equal(code, 2);
      assert.match(
        err,
        /four words of an instance.*\nhint: of a custom domain, "skerry domain list INSTANCE"/,
      );
    }
  });

  await t.test('a balance says what happens when it is used up', async () => {
    const { out } = await skerry('credit', 'balance');
    assert.match(out, /^when used up: nothing is stopped$/m);
  });

  await t.test('a mistyped address has no balance, and nothing is granted to it', async () => {
    const before = await countMessages();
    for (const [command, ...more] of [['balance'], ['history'], ['costs'], ['grant', '5']] as const) {
      const { out, err, code } = await skerry('credit', command, made.address.slice(0, -1), ...more);
      assert.deepEqual([out, code], ['', 2], command);
      assert.match(err, /40 hexadecimal digits \(INVALID_ADDRESS\)/);
    }
    const mistyped = [
      'abc',
      'tz1VSUr8wwNhLAzempoch5d6hLRiTh8Cjcjc',
      '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAeD',
    ];
    const naming: ((address: string) => string[])[] = [
      ...['balance', 'history', 'costs', 'purchases'].map((what) => (one: string) => ['credit', what, one]),
      (one) => ['credit', 'grant', one, '5'],
      (one) => ['instance', 'list', '--address', one],
      (one) => ['program', 'list', '--address', one],
      (one) => ['message', 'list', '--address', `${made.address},${one}`],
      (one) => ['webhook', 'add', 'https://example.org/hook', '--sender', one],
      (one) => ['node', 'verify', '--schedulers', one],
      (one) => ['score', 'explain', 'node', '--publisher', one],
    ];
    for (const address of mistyped)
      for (const args of naming.map((argsOf) => argsOf(address))) {
        const { out, err, code } = await skerry(...args);
        assert.deepEqual([out, code], ['', 2], args.join(' '));
        assert.match(err, /\(INVALID_ADDRESS\)/);
      }
    assert.match(
      (await skerry('credit', 'balance', 'abc')).err,
      /no chain has the address "abc".* SOL: 32 bytes in base58/,
    );
    assert.match(
      (await skerry('credit', 'balance', mistyped[2]!)).err,
      /capital letters .* a digit of it is wrong/,
    );
    assert.equal((await skerry('credit', 'balance', mistyped[2]!.toLowerCase())).code, 0);
    assert.equal(await countMessages(), before);
  });

  await t.test(
    'a mistyped key file is not made, and prices that would not count are not published',
    async () => {
      const before = await countMessages();
      const missing = join(home.path, 'nokey');
      const prices = '{"instance":{"compute_unit":5}}';
      for (const args of [
        ['grant', made.address, '5', '--key-file', missing],
        ['prices', '--set', prices, '--key-file', missing],
      ]) {
        const { out, err, code } = await skerry('credit', ...args);
        assert.deepEqual([out, code], ['', 2]);
        assert.match(err, /there is no key file .*nokey \(INVALID_CONFIG\)/);
      }
      await assert.rejects(stat(missing), { code: 'ENOENT' });
      for (const wrong of ['{}', '{"instance":{"compute_unit":-5}}'])
        assert.match((await skerry('credit', 'prices', '--set', wrong)).err, /\(INVALID_CONTENT\)/);
      for (const args of [
        ['grant', made.address, '5'],
        ['prices', '--set', prices],
      ]) {
        const people = await skerry('credit', ...args);
        assert.deepEqual([people.out, people.code], ['', 4]);
        assert.match(people.err, /nothing was sent: .* does not trust 0x.*--key-file \(NOT_PERMITTED\)/);
        const programs = await skerry('credit', ...args, '--json');
        assert.deepEqual([programs.out, programs.code], ['', 4]);
        assert.equal((JSON.parse(programs.err) as { code: string }).code, 'NOT_PERMITTED');
      }
      assert.equal(await countMessages(), before);
    },
  );

  await t.test(
    'a message that is not in force says so, where it is sent and where it is looked at',
    async () => {
      const nowhere = '0'.repeat(64);
      const send = async (why: string, ...args: string[]) => {
        const people = await skerry(...args);
        assert.match(people.out, /^[0-9a-f]{64}\n$/);
        assert.match(people.err, new RegExp(`^pending: .* \\(${why}\\)\n$`));
        const programs = await skerry(...args, '--json');
        const { message_status: status, reason } = JSON.parse(programs.out) as Record<
          string,
          { code: string }
        >;
        assert.deepEqual([people.code, programs.code, status, reason!.code], [0, 0, 'pending', why]);
        return people.out.trim();
      };
      const amend = JSON.stringify({ type: 'amend', ref: nowhere, content: {} });
      const waiting = await send('AMEND_TARGET_NOT_FOUND', 'message', 'post', '--content', amend);
      const forgets = await send('FORGET_TARGET_NOT_FOUND', 'message', 'forget', nowhere, '--yes');
      const undo = JSON.stringify({ hashes: [forgets] });
      const refused = await skerry('message', 'post', '--type', 'FORGET', '--content', undo, '--json');
      const { item_hash: rejected } = (JSON.parse(refused.err) as { details: { item_hash: string } }).details;

      const look = async (hash: string) => {
        const { out } = await skerry('message', 'get', hash);
        return /^item_hash: [0-9a-f]{64}\nstatus: (\w+)\n(?:reason: .* \((\w+)\)\n)?/.exec(out)?.slice(1);
      };
      assert.deepEqual(await look(waiting), ['pending', 'AMEND_TARGET_NOT_FOUND']);
      assert.deepEqual(await look(rejected), ['rejected', 'FORGET_FORGET']);

      const file = join(home.path, 'gone.py');
      await writeFile(file, 'print(1)');
      const created = JSON.parse((await skerry('program', 'create', file, '--json')).out) as Record<
        string,
        string
      >;
      const hash = created.program_hash!;
      assert.equal(created.message_status, 'processed');
      const programs = JSON.parse((await skerry('program', 'list', '--limit', '1', '--json')).out) as {
        messages: { item_hash: string }[];
        pagination: { total: number };
      };
      assert.deepEqual([programs.messages[0]!.item_hash, programs.pagination.total], [hash, 1]);
      assert.deepEqual(await look(hash), ['processed', undefined]);
      const shown = await skerry('program', 'show', hash);
      assert.match(shown.out, /^status {2,}processed$/m);
      assert.equal(shown.err, '');
      for (const args of [
        ['program', 'delete', hash],
        ['message', 'forget', hash],
        ['webhook', 'delete', 'any'],
        ['instance', 'delete', 'web'],
        ['instance', 'reinstall', 'web'],
        ['instance', 'restore', 'web', '--snapshot', 'first'],
        ['instance', 'snapshot', 'delete', 'web', 'first'],
      ]) {
        const { code, err } = await skerry(...args);
        assert.equal(code, 1, args.join(' '));
        assert.match(err, /use --yes.*\(CONFIRMATION_REQUIRED\)|\(CONFIRMATION_REQUIRED\).*use --yes/s);
      }
      assert.deepEqual(await skerry('program', 'delete', hash, '--yes'), {
        out: `deleted ${hash}\n`,
        err: '',
        code: 0,
      });
      assert.deepEqual(await look(hash), ['forgotten', 'MESSAGE_FORGOTTEN']);
      assert.match((await skerry('program', 'show', hash)).err, /^forgotten: .*\(MESSAGE_FORGOTTEN\)\n$/);
    },
  );

  await t.test('a program that no node would take is refused before its file is sent', async () => {
    const before = await countMessages();
    const file = join(home.path, 'site.wasm');
    await writeFile(file, Buffer.from([0, 0x61, 0x73, 0x6d]));
    for (const more of [
      ['--timeout', '2h'],
      ['--memory', '8'],
      ['--memory', '100G'],
      ['--name', 'n'.repeat(65)],
    ]) {
      const { out, err, code } = await skerry('program', 'create', file, ...more);
      assert.deepEqual([out, code], ['', 2], more.join(' '));
      assert.match(err, /\(INVALID_CONTENT\)/);
    }
    assert.equal(await countMessages(), before);
  });

  await t.test('a file that was sent before has the tags that it is sent with again', async () => {
    const path = join(home.path, 'a.txt');
    await writeFile(path, 'the same bytes');
    const put = async (...more: string[]) => {
      const { out, err } = await skerry('file', 'put', path, '--json', ...more);
      const put = JSON.parse(out || err) as { item_hash: string; message_status: string };
      assert.equal(put.message_status, 'processed');
      return put.item_hash;
    };
    const first = await put();
    const tagged = await put('--tags', 'site,v2');
    assert.notEqual(tagged, first);
    const { out } = await skerry('message', 'get', tagged, '--json');
    const { content } = JSON.parse(out) as { content: { tags: string[] } };
    assert.deepEqual(content.tags, ['site', 'v2']);
    const again = [await put('--tags', 'v2'), await put('--tags', 'v2,site'), await put()];
    assert.deepEqual(again, [tagged, tagged, first]);
    const nowhere = await skerry('file', 'get', tagged, '-o', join(home.path, 'none', 'a.txt'));
    assert.match(nowhere.err, /^error: there is no directory .*none \(INVALID_PARAMETERS\)/);
    const elsewhere = await put('--channel', 'notes', '--tags', 'v2');
    assert.ok(![first, tagged].includes(elsewhere));
    assert.equal(await put('--channel', 'notes'), elsewhere);
  });

  await t.test('the files of an owner are listed with what each costs, until nothing keeps it', async () => {
    const path = join(home.path, 'b.txt');
    await writeFile(path, Buffer.alloc(2_000));
    const { out: put } = await skerry('file', 'put', path, '--json');
    const { item_hash: message, file_hash: hash } = JSON.parse(put) as Record<string, string>;
    const list = async (...more: string[]) => {
      const { out } = await skerry('file', 'list', '--json', ...more);
      return JSON.parse(out) as { total_size: number; files: Record<string, unknown>[] };
    };
    const kept = (await list()).files.find(({ item_hash }) => item_hash === message);
    assert.deepEqual([kept?.file_hash, kept?.size], [hash, 2_000]);
    assert.match(String(kept?.cost_credit_nano), /^[1-9][0-9]*$/);
    assert.equal((await list('--limit', '1')).files.length, 1);
    const { out, err } = await skerry('file', 'list');
    assert.match(out, /^CREATED +SIZE +PER MONTH +FILE +MESSAGE\n/);
    assert.match(out, new RegExp(` 2\\.0 KiB .* ${hash} +${message}\n`));
    assert.match(err, / in all\n/);
    await skerry('message', 'forget', message!, '--yes');
    assert.ok(!(await list()).files.some(({ file_hash }) => file_hash === hash));
    assert.deepEqual((await list('--address', `0x${'1'.repeat(40)}`)).files, []);
  });

  await t.test('a contract of a chain that the core node does not index is not asked for', async () => {
    const before = await countMessages();
    const contract = `0x${'0'.repeat(40)}`;
    for (const args of [
      ['add', 'mars', contract, '--abi', '["event X(address a)"]'],
      ['remove', 'mars', contract],
    ]) {
      const { err, code } = await skerry('indexer', ...args);
      assert.equal(code, 3);
      assert.match(err, /\(NETWORK_NOT_FOUND\)/);
    }
    assert.equal(await countMessages(), before);
  });

  await t.test('what the core node does not index when it is asked to is told', async () => {
    const [one, other] = [`0x${'a1'.repeat(20)}`, `0x${'b2'.repeat(20)}`];
    const add = (contract: string) =>
      skerry('indexer', 'add', 'quiet', contract, '--abi', '["event X(address a)"]');
    const listed = async () => {
      const { out } = await skerry('indexer', 'status', 'quiet', '--json');
      return (JSON.parse(out) as { contracts: { contract: string }[] }).contracts.map((row) => row.contract);
    };
    const added = await add(one);
    assert.equal(added.code, 0, added.err);
    assert.match(added.out, /^[0-9a-f]{64}\n$/);
    assert.deepEqual(await listed(), [one]);

    const tooMany = await add(other);
    assert.deepEqual([tooMany.out, tooMany.code], ['', 4]);
    assert.match(tooMany.err, /^error: one owner can have 1 contracts indexed here \(WATCH_LIMIT_REACHED\)/m);
    const unknown = await skerry('indexer', 'remove', 'quiet', other, '--json');
    assert.deepEqual([unknown.out, unknown.code], ['', 3]);
    assert.equal((JSON.parse(unknown.err) as { code: string }).code, 'WATCH_NOT_FOUND');

    const removed = await skerry('indexer', 'remove', 'quiet', one);
    assert.equal(removed.code, 0, removed.err);
    assert.deepEqual(await listed(), []);
  });

  await t.test('a credit service says why the core node does not index what it sells', async () => {
    const tokenOf = (symbol: string, byte: string) => ({
      ...{ symbol, contract: `0x${byte.repeat(20)}` },
      ...{ decimals: 6, credits_per_token: 1 },
    });
    const sale = { name: 'quiet', chain: 'ETH', chain_id: 1, receiver: `0x${'cd'.repeat(20)}` };
    const sales = { networks: [{ ...sale, tokens: [tokenOf('ONE', 'a1'), tokenOf('TWO', 'b2')] }] };
    const salesFile = join(home.path, 'sales.json');
    await writeFile(salesFile, JSON.stringify(sales));
    const config = readConfig(creditService.config, {
      SKERRY_CREDIT_DATA_DIR: join(home.path, 'credit'),
      SKERRY_CREDIT_PORT: '0',
      SKERRY_CREDIT_HOST: '127.0.0.1',
      SKERRY_CREDIT_CORE_URL: core.url,
      SKERRY_CREDIT_SALES_FILE: salesFile,
      SKERRY_CREDIT_POLL_INTERVAL_MS: '50',
    });
    const { signal } = new AbortController();
    await using credit = await creditService.start(config, { log: createLogger('test', 'fatal'), signal });
    const readWhy = async () => (await call(credit.urls[0]!, CREDIT_API.getCreditStatus, {})).reasons;
    const told = 'the core node does not index TWO on quiet: one owner can have 1 contracts indexed here';
    await until('it is told', readWhy, (reasons) => reasons.includes(told));
  });

  await t.test('the network of an address that was given has no name', async () => {
    const { out } = await skerry('network', 'show', '--json');
    assert.equal((JSON.parse(out) as { name: unknown }).name, null);
  });

  await t.test('a private key leaves only when that was confirmed, into a file of its own', async () => {
    const secret = (await readFile(made.path, 'utf8')).trim();
    const file = join(home.path, 'exported');
    const asked = await skerry('key', 'export', '-o', file);
    assert.equal(asked.code, 1);
    assert.match(asked.err, /CONFIRMATION_REQUIRED/);
    const exported = await skerry('key', 'export', '-o', file, '--yes');
    assert.equal(exported.code, 0, exported.err);
    assert.equal((await stat(file)).mode & 0o777, 0o600);
    assert.equal((await readFile(file, 'utf8')).trim(), secret);
    assert.ok(!(asked.out + asked.err + exported.out + exported.err).includes(secret.slice(2)));
    assert.match((await skerry('key', 'export', '-o', file, '--yes')).err, /KEY_EXISTS/);
    assert.equal((await skerry('key', 'export', '-o', '-', '--yes')).out, `${secret}\n`);
    const copied = await skerry('key', 'import', file, '--name', 'copy', '--json');
    assert.equal((JSON.parse(copied.out) as { address: string }).address, made.address);
  });
});
