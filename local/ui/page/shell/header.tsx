import type { Signal } from '@preact/signals';
import { connection } from '../api/connection-state.ts';
import { logout, session } from '../api/page-session.ts';
import { setTheme, theme } from '../lib/theme.ts';
import type { Theme } from '../lib/theme.ts';
import { Dotted } from '../parts/dotted.tsx';
import { Icon } from '../parts/icon.tsx';
import { Menu } from '../parts/menu.tsx';
import { Name } from '../parts/name.tsx';
import { toast } from '../parts/toast.tsx';
import { nodeName } from './node-name.ts';
import { askForPassword } from './own-password.tsx';
import { paletteIsOpen } from './palette.tsx';

const STATES = { ok: 'Connected', gone: 'Not connected', starting: 'The node is starting' } as const;
const TONES = { ok: 'ok', gone: 'bad', starting: 'warn' } as const;
const THEMES: readonly { readonly name: Theme; readonly label: string; readonly icon: 'contrast' | 'sun' | 'moon' }[] =
  [
    { name: 'auto', label: 'System', icon: 'contrast' },
    { name: 'light', label: 'Light', icon: 'sun' },
    { name: 'dark', label: 'Dark', icon: 'moon' },
  ];
const isMac = navigator.userAgent.includes('Mac');

export function Header({ isMenuOpen }: { readonly isMenuOpen: Signal<boolean> }) {
  const chosen = THEMES.find(({ name }) => name === theme.value)!;
  const state = connection.value;
  return (
    <header class="header">
      <button
        type="button"
        class="icon-button menu-button"
        aria-label="Menu"
        aria-expanded={isMenuOpen.value}
        aria-controls="menu"
        onClick={() => (isMenuOpen.value = !isMenuOpen.value)}
      >
        <Icon name={isMenuOpen.value ? 'close' : 'menu'} size={20} />
      </button>
      <div class="node-name truncate" title={STATES[state]}>
        <span class={`dot ${TONES[state]}`} />
        <span class="truncate">{nodeName.value}</span>
        <span class="hidden-visually" role="status">
          {STATES[state]}
        </span>
      </div>
      <button
        type="button"
        class="find"
        onClick={() => (paletteIsOpen.value = true)}
        aria-keyshortcuts="Control+K Meta+K"
      >
        <Icon name="search" size={16} />
        <span class="grow">Go to…</span>
        <kbd aria-hidden="true">{isMac ? '⌘' : 'Ctrl'} K</kbd>
      </button>
      <Menu
        label={`Colours: ${chosen.label}`}
        trigger={<Icon name={chosen.icon} />}
        items={THEMES.map(({ name, label, icon }) => ({
          label,
          icon,
          isChecked: name === theme.value,
          onSelect: () => setTheme(name),
        }))}
      />
      <User />
    </header>
  );
}

function User() {
  const who = session.value;
  if (who === null) return null;
  if (!who.hasSecurity)
    return (
      <span class="badge warn" title="The node runs without security: anyone who can reach it can do anything.">
        <Icon name="warning" size={14} />
        <span class="badge-text">No security</span>
      </span>
    );
  const leave = () => {
    logout().catch(() => toast('The node is not responding; you are still logged in there.', 'bad'));
  };
  const role = who.isAdministrator ? 'Administrator' : who.isOperator ? 'Operator' : 'User';
  return (
    <Menu
      label={`${who.user}, ${role}`}
      trigger={
        <>
          <Icon name="user" />
          <span class="user-name truncate">{who.user}</span>
        </>
      }
      heading={
        <>
          <strong class="break">
            <Name text={who.user ?? ''} isWhole />
          </strong>
          <span class="faint small">
            <Dotted items={[role, who.groups.length > 0 ? who.groups.join(', ') : null]} />
          </span>
        </>
      }
      items={[
        { label: 'Change password', icon: 'key', onSelect: askForPassword },
        { label: 'Log out', icon: 'logout', onSelect: leave },
      ]}
    />
  );
}
