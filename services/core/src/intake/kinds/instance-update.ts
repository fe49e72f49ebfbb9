import { foldUpdate, parseInstanceUpdateContent } from '@skerry/protocol';
import { defineKind } from '../accepted.ts';
import { instanceEffect } from '../effects/instances.ts';
import { changeOfInstance } from './instance-change.ts';

/** INSTANCE_UPDATE: new name, description or firewall. */
export const instanceUpdate = defineKind({
  read: parseInstanceUpdateContent,
  effects: [instanceEffect],
  accept: (message, content) => changeOfInstance(content.instance_id, foldUpdate(message, content)),
});
