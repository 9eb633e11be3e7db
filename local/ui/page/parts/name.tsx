import type { ComponentChildren } from 'preact';

/**
 * What has no shape of its own, or changes the direction of what stands around it: a name made of it would pass for
 * another one. Between pictures U+200D makes one of them.
 */
const UNSEEN =
  /[\p{Cc}\u00ad\u061c\u180e\u200b\u200c\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|(?<![\p{Extended_Pictographic}\ufe0f\p{Emoji_Modifier}])\u200d/gu;
const LONGEST = 200;

/**
 * A name that a client has chosen, isolated: nothing of it changes how the text around it is read, and what can't be
 * seen stands there by its number.
 */
export function Name({ text, isWhole = false }: { readonly text: string; readonly isWhole?: boolean }) {
  const isCut = !isWhole && text.length > LONGEST;
  const shown = isCut ? `${text.slice(0, LONGEST)}…` : text;
  const parts: ComponentChildren[] = [];
  let from = 0;
  for (const { 0: unseen, index } of shown.matchAll(UNSEEN)) {
    parts.push(
      shown.slice(from, index),
      <span
        key={index}
        class="unseen"
      >{`U+${unseen.codePointAt(0)!.toString(16).toUpperCase().padStart(4, '0')}`}</span>,
    );
    from = index + unseen.length;
  }
  parts.push(shown.slice(from));
  return <bdi title={isCut ? text : undefined}>{parts}</bdi>;
}
