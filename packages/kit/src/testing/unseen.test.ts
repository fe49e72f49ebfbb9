import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Type } from '@skerry/protocol/type';
import { listUnseen } from './unseen.ts';

const Place = Type.Object({ port: Type.Integer(), host: Type.Optional(Type.String()) });
const schema = Type.Object({
  places: Type.Array(Place),
  best: Type.Union([Place, Type.Null()]),
  byName: Type.Record(Type.String(), Place),
  anything: Type.Unknown(),
});
const whole = { port: 1, host: 'a' };
const shown = { places: [whole], best: whole, byName: { x: whole }, anything: { b: [{ c: 1 }] } };

test('a field that no answer had is told, and nothing of what never was there', () => {
  const empty = { places: [], best: null, byName: {}, anything: 1 };
  assert.deepEqual(listUnseen(schema, shown, [empty]), []);
  assert.deepEqual(listUnseen(schema, shown, []), []);
  const partly = { places: [{ port: 2 }], best: { port: 2 }, byName: { y: { port: 2 } }, anything: {} };
  assert.deepEqual(listUnseen(schema, shown, [partly, empty]), [
    'answer.places[].host',
    'answer.best.host',
    'answer.byName.*.host',
  ]);
  assert.deepEqual(listUnseen(schema, shown, [partly, { ...shown, anything: undefined }]), []);
  assert.deepEqual(listUnseen(schema, shown, [{}]), [
    'answer.places',
    'answer.best',
    'answer.byName',
    'answer.anything',
  ]);
});
