import { ATTRIBUTE_SETTING_DEFAULT, type AttributeSetting } from '../../attributes/api.ts';
import {
  decodeSetting,
  encodeSetting,
  isSameSetting,
  SETTING_STREAM,
  SETTING_TYPE,
  SETTINGS_LOOKED_AT_MAX,
} from '../../attributes/format/setting.ts';
import { isSkuaError } from '../../base/errors.ts';
import { retryConflicts } from '../../base/retry-conflicts.ts';
import { type Ids, newId } from '../../ports/ids.ts';
import { type EventStore, NO_STREAM } from '../api.ts';

/** Which attribute indexes the log has, for all who may decide that: an event for each change of it. */

interface FoundSetting {
  readonly setting: AttributeSetting;
  /** Number of the last event of its stream; `NO_STREAM` without one. */
  readonly version: number;
}

async function find(store: EventStore): Promise<FoundSetting> {
  try {
    const { events, lastEventNumber } = await store.readStream(SETTING_STREAM, {
      direction: 'backward',
      from: 'end',
      count: SETTINGS_LOOKED_AT_MAX,
    });
    const setting = events.map(({ data }) => decodeSetting(data)).find((found) => found !== null);
    return { setting: setting ?? ATTRIBUTE_SETTING_DEFAULT, version: lastEventNumber };
  } catch (error) {
    if (!isSkuaError(error, 'stream_not_found')) throw error;
    return { setting: ATTRIBUTE_SETTING_DEFAULT, version: NO_STREAM };
  }
}

/** The setting of the log, or what a log without one has. */
export async function readSetting(store: EventStore): Promise<AttributeSetting> {
  return (await find(store)).setting;
}

/** Changes a part of the setting; writes nothing where it is so already. Answers with all of it. */
export function changeSetting(store: EventStore, ids: Ids, part: Partial<AttributeSetting>): Promise<AttributeSetting> {
  return retryConflicts(async () => {
    const { setting, version } = await find(store);
    const wanted = { ...setting, ...part };
    if (isSameSetting(wanted, setting)) return setting;
    await store.append(SETTING_STREAM, version, [
      { id: newId(ids), type: SETTING_TYPE, isJson: true, data: encodeSetting(wanted), metadata: new Uint8Array(0) },
    ]);
    return wanted;
  });
}
