import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { describe, test } from 'node:test';
import { createParser } from '../schema.ts';
import { type Api, isContent } from './operation.ts';

const files = readdirSync(import.meta.dirname, { recursive: true })
  .map(String)
  .filter((name) => name.endsWith('.ts') && !name.endsWith('.test.ts'));

/** What a service says of itself, files, a WebSocket, and what is passed on. */
const OF_ITSELF =
  /^\/($|vm\/|status\b|metrics\b|health$|version$|about\/(login|usage|capability)|api\/(status$|docs|ws0))/;
const OF_ITSELF_V0 =
  /^\/api\/v0\/(info|health$|version|sync\/status|openapi|docs|storage\/(raw\/)?:hash$|storage\/limits)/;
const isOfItself = (path: string) => OF_ITSELF.test(path) || OF_ITSELF_V0.test(path);

describe('examples fit the contract that they stand in', () => {
  for (const file of files)
    test(file, async () => {
      const tables = Object.entries((await import(`./${file}`)) as Record<string, Api>).filter(([name]) =>
        name.endsWith('_API'),
      );
      for (const [name, api] of tables) {
        for (const [id, { example, answers, params, query, body, ...route }] of Object.entries(api)) {
          const where = `${name}.${id}`;
          const isRead = route.method === 'GET' && 200 in answers && !isOfItself(route.path);
          assert.ok(query || !isRead, `${where} ignores parameters that it does not have`);
          // Who asks for something that is not there would take everything for what it asked for.
          assert.ok(!query || Object(query).additionalProperties === false, `${where} takes any parameter`);
          if (!example) continue;
          if (params) createParser(params, `${where}: params`)(example.params);
          if (query) createParser(query, `${where}: query`)({ ...defaultsOf(query), ...example.query });
          if (body && (body.kind === 'json' || body.kind === 'signed'))
            createParser(body.schema, `${where}: body`)(example.body);
          const form = answers[Math.min(...Object.keys(answers).map(Number))]!;
          const schema = isContent(form) ? form.content['application/json'] : form;
          if (schema) createParser(schema, `${where}: answer`)(example.answer);
        }
      }
    });
});

const defaultsOf = (query: object) =>
  Object.fromEntries(
    Object.entries((query as { properties: Record<string, { default?: unknown }> }).properties).flatMap(
      ([name, schema]) => (schema.default === undefined ? [] : [[name, schema.default]]),
    ),
  );
