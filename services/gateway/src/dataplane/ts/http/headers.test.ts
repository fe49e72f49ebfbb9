import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checkFraming } from './headers.ts';

test('a request whose length can be read in two ways is refused, and told how it is read in one', () => {
  const length = (value: string) => ['Content-Length', value];
  const coding = (value: string) => ['Transfer-Encoding', value];
  checkFraming('1.1', []);
  checkFraming('1.0', length('3'));
  checkFraming('1.1', coding('Chunked'));
  const refused = {
    code: 'INVALID_PARAMETERS',
    message:
      'The length of the request body is ambiguous. Send one Content-Length, or Transfer-Encoding: chunked alone by HTTP/1.1.',
  };
  for (const rawHeaders of [
    [...length('3'), ...length('3')],
    length('-3'),
    [...length('3'), ...coding('chunked')],
    [...coding('chunked'), ...coding('chunked')],
    coding('gzip, chunked'),
  ])
    assert.throws(() => checkFraming('1.1', rawHeaders), refused, rawHeaders.join(' '));
  assert.throws(() => checkFraming('1.0', coding('chunked')), refused);
});
