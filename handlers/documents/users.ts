import type { User } from '../../core/security/api.ts';
import type { LinkDocument } from './link.ts';

/** Documents of users as they are sent, member by member as the reference has them: types alone. */

/** What answers about users end with. The numbers mean nothing to clients. */
export interface SuccessMembers {
  readonly success: boolean;
  readonly error: 'Success';
  readonly msgTypeId: number;
  readonly label: string;
}

export interface UserMembers extends Pick<User, 'loginName' | 'fullName' | 'groups'> {
  /** Null but in the caller's own record. */
  readonly dateLastUpdated: string | null;
  readonly disabled: boolean;
}

export interface UserDocument extends UserMembers {
  readonly links: readonly LinkDocument[];
  /** In lists where it was asked for. */
  readonly passwordFormat?: User['passwordFormat'];
}

/** GET `/users`. */
export interface UsersDocument extends SuccessMembers {
  readonly data: readonly UserDocument[];
}

/** GET `/users/{login}`. */
export interface UserDetailsDocument extends SuccessMembers {
  readonly data: UserDocument;
}

/** GET `/users/$current`. */
export interface CurrentUserDocument extends SuccessMembers {
  readonly data: UserMembers;
}

/** What changes a user is answered with. */
export interface UserChangedDocument extends SuccessMembers {
  readonly loginName: string;
}

/** GET `/admin/login`. */
export interface IdentityDocument extends Pick<SuccessMembers, 'success'> {
  readonly data: {
    readonly loginName: string | null;
    readonly fullName: string | null;
    readonly groups: readonly string[];
    readonly dateLastUpdated?: string | null;
  };
}

/** GET and POST of `/ui/session`: the user of the page, and what that user may do. */
export interface SessionDocument {
  /** Null: no user has logged in, or the node runs without users. */
  readonly user: string | null;
  readonly groups: readonly string[];
  /** Null without a session. */
  readonly endsAt: string | null;
  /** False: the node runs without security, so everybody may do everything. */
  readonly security: boolean;
  /** The opposite. */
  readonly insecure: boolean;
  readonly canLogOut: boolean;
  /** The node itself is reached over TLS. */
  readonly encrypted: boolean;
  /** A header that what changes something has to bring. */
  readonly changesNeed: string;
  readonly isOperator: boolean;
  readonly isAdministrator: boolean;
  readonly isBackupKeeper: boolean;
}
