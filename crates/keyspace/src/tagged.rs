//! Eight-byte owners that say by the low bits of their pointer what they own.
//!
//! ```text
//! bits 63 … 2: the owned pointer as its owner writes it     bits 1, 0: which of three
//!   0  an `A`, thin: the word *is* the `A`, so `&A` is a view of it
//!   1  a `Box<B>`
//!   2  a `C`, thin: borrowed through a guard that holds the word without its tag
//! ```
//!
//! All pointer tricks of the containers are here; [`Tagged`]'s face is safe.

use std::{
    convert::Infallible,
    marker::PhantomData,
    mem::{self, ManuallyDrop},
    ops::Deref,
    ptr::NonNull,
};

use rdb::{intset::Intset, listpack::Listpack};

/// An owner that is exactly one pointer.
///
/// # Safety
/// The type is `repr(transparent)` over a pointer whose bits `into_thin` returns; the two lowest
/// bits of it are zero; `from_thin` of that pointer gives the same owner back.
pub(crate) unsafe trait Thin: Sized {
    /// The tag bits that a [`Tagged`] with this as its third kind looks at.
    const TAG_MASK: usize = TAG_MASK;

    /// The pointer, with everything it owns.
    fn into_thin(self) -> NonNull<u8>;

    /// The owner again.
    ///
    /// # Safety
    /// `raw` came from `into_thin` of the same type, and nothing else owns it.
    unsafe fn from_thin(raw: NonNull<u8>) -> Self;
}

// SAFETY: transparent over the pointer to its block, which is 16-aligned.
unsafe impl Thin for Listpack {
    fn into_thin(self) -> NonNull<u8> {
        self.into_raw()
    }

    unsafe fn from_thin(raw: NonNull<u8>) -> Self {
        // SAFETY: the caller's.
        unsafe { Self::from_raw(raw) }
    }
}

// SAFETY: transparent over the pointer to its block, which is 16-aligned.
unsafe impl Thin for Intset {
    fn into_thin(self) -> NonNull<u8> {
        self.into_raw()
    }

    unsafe fn from_thin(raw: NonNull<u8>) -> Self {
        // SAFETY: the caller's.
        unsafe { Self::from_raw(raw) }
    }
}

// SAFETY: there is no value of this type, so there is nothing to keep.
unsafe impl Thin for Infallible {
    const TAG_MASK: usize = TAG_BOXED;

    fn into_thin(self) -> NonNull<u8> {
        match self {}
    }

    unsafe fn from_thin(_raw: NonNull<u8>) -> Self {
        unreachable!("no value of an empty type was ever taken in")
    }
}

/// What a [`Tagged`] holds: owned, borrowed or mutably borrowed.
#[derive(Debug)]
pub(crate) enum Choice<A, B, C> {
    /// The thin first kind.
    Thin(A),
    /// The boxed second kind.
    Boxed(B),
    /// The thin third kind.
    Third(C),
}

/// Owner of an `A`, a boxed `B` or a `C`, in eight bytes.
#[repr(transparent)]
pub(crate) struct Tagged<A: Thin, B, C: Thin = Infallible> {
    raw: NonNull<u8>,
    marker: PhantomData<(A, Box<B>, C)>,
}

/// What [`Tagged::get`] answers.
pub(crate) type Borrowed<'a, A, B, C> = Choice<&'a A, &'a B, Guard<'a, C>>;

/// What [`Tagged::get_mut`] answers.
pub(crate) type BorrowedMut<'a, A, B, C> = Choice<&'a mut A, &'a mut B, ThirdMut<'a, C>>;

impl<A: Thin, B, C: Thin> Tagged<A, B, C> {
    /// Takes in a thin `A`.
    pub(crate) fn thin(owner: A) -> Self {
        Self::pack(owner.into_thin(), TAG_THIN)
    }

    /// Takes in a boxed `B`.
    pub(crate) fn boxed(owner: Box<B>) -> Self {
        const { assert!(mem::align_of::<B>() > TAG_MASK) };
        Self::pack(NonNull::from(Box::leak(owner)).cast(), TAG_BOXED)
    }

    /// Takes in a thin `C`.
    pub(crate) fn third(owner: C) -> Self {
        Self::pack(owner.into_thin(), TAG_THIRD)
    }

    fn pack(raw: NonNull<u8>, tag: usize) -> Self {
        assert_eq!(raw.addr().get() & TAG_MASK, 0, "a pointer to tag has free low bits");
        Self { raw: raw.map_addr(|addr| addr | tag), marker: PhantomData }
    }

    /// A view of what is held.
    #[inline]
    pub(crate) fn get(&self) -> Borrowed<'_, A, B, C> {
        match self.tag() {
            // SAFETY: with tag 0 the word is an `A`: both types are transparent over one pointer.
            TAG_THIN => Choice::Thin(unsafe { NonNull::from(self).cast::<A>().as_ref() }),
            // SAFETY: with tag 1 this owns a box, borrowed here as long as `self` is.
            TAG_BOXED => Choice::Boxed(unsafe { untagged(self.raw).cast::<B>().as_ref() }),
            _ => {
                // SAFETY: with tag 2 this owns a `C`; the guard never drops its copy.
                let owner = unsafe { C::from_thin(untagged(self.raw)) };
                Choice::Third(Guard { owner: ManuallyDrop::new(owner), marker: PhantomData })
            }
        }
    }

    /// A mutable view of what is held.
    #[inline]
    pub(crate) fn get_mut(&mut self) -> BorrowedMut<'_, A, B, C> {
        match self.tag() {
            // SAFETY: as in `get`; an `A` put there leaves the tag zero, by `Thin`.
            TAG_THIN => Choice::Thin(unsafe { NonNull::from(self).cast::<A>().as_mut() }),
            // SAFETY: as in `get`, and `self` is borrowed mutably.
            TAG_BOXED => Choice::Boxed(unsafe { untagged(self.raw).cast::<B>().as_mut() }),
            _ => Choice::Third(ThirdMut { home: &mut self.raw, marker: PhantomData }),
        }
    }

    /// What is held, owned.
    pub(crate) fn into_inner(self) -> Choice<A, Box<B>, C> {
        let this = ManuallyDrop::new(self);
        // SAFETY: `this` is never dropped, so this is the only time its owner is taken out.
        unsafe { this.take() }
    }

    /// The word as one pointer, for whoever stores it elsewhere.
    pub(crate) fn into_raw(self) -> NonNull<u8> {
        ManuallyDrop::new(self).raw
    }

    /// The owner again.
    ///
    /// # Safety
    /// `raw` came from `into_raw` of the same type, and nothing else owns it.
    pub(crate) unsafe fn from_raw(raw: NonNull<u8>) -> Self {
        Self { raw, marker: PhantomData }
    }

    /// # Safety
    /// Only once, and `self` is neither used nor dropped afterwards.
    unsafe fn take(&self) -> Choice<A, Box<B>, C> {
        match self.tag() {
            // SAFETY: with tag 0 the word came from `A::into_thin`; taken once, by the caller.
            TAG_THIN => Choice::Thin(unsafe { A::from_thin(self.raw) }),
            TAG_BOXED => {
                // SAFETY: with tag 1 it came from a leaked box; taken once, by the caller.
                let owner = unsafe { Box::from_raw(untagged(self.raw).cast::<B>().as_ptr()) };
                Choice::Boxed(owner)
            }
            // SAFETY: with tag 2 it came from `C::into_thin`; taken once, by the caller.
            _ => Choice::Third(unsafe { C::from_thin(untagged(self.raw)) }),
        }
    }

    #[inline]
    fn tag(&self) -> usize {
        self.raw.addr().get() & C::TAG_MASK
    }
}

impl<A: Thin + Clone, B: Clone, C: Thin + Clone> Clone for Tagged<A, B, C> {
    fn clone(&self) -> Self {
        match self.get() {
            Choice::Thin(owner) => Self::thin(owner.clone()),
            Choice::Boxed(owner) => Self::boxed(Box::new(owner.clone())),
            Choice::Third(owner) => Self::third((*owner).clone()),
        }
    }
}

impl<A: Thin, B, C: Thin> Drop for Tagged<A, B, C> {
    fn drop(&mut self) {
        // SAFETY: `self` is gone after this.
        drop(unsafe { self.take() });
    }
}

// SAFETY: it owns an `A`, a `Box<B>` or a `C` and nothing else.
unsafe impl<A: Thin + Send, B: Send, C: Thin + Send> Send for Tagged<A, B, C> {}
// SAFETY: as above; shared references give out shared references only.
unsafe impl<A: Thin + Sync, B: Sync, C: Thin + Sync> Sync for Tagged<A, B, C> {}

/// A shared borrow of a thin owner whose word carries a tag at home.
#[derive(Debug)]
pub struct Guard<'a, C> {
    owner: ManuallyDrop<C>,
    marker: PhantomData<&'a C>,
}

impl<C> Deref for Guard<'_, C> {
    type Target = C;

    #[inline]
    fn deref(&self) -> &C {
        &self.owner
    }
}

/// A mutable borrow of a thin owner whose word carries a tag at home.
pub(crate) struct ThirdMut<'a, C: Thin> {
    home: &'a mut NonNull<u8>,
    marker: PhantomData<&'a mut C>,
}

impl<C: Thin> ThirdMut<'_, C> {
    /// Lends the owner to `change`; its word, which may be another then, goes home afterwards.
    #[inline]
    pub(crate) fn update<R>(self, change: impl FnOnce(&mut C) -> R) -> R {
        struct PutBack<'a, C: Thin> {
            owner: ManuallyDrop<C>,
            home: &'a mut NonNull<u8>,
        }
        impl<C: Thin> Drop for PutBack<'_, C> {
            fn drop(&mut self) {
                // SAFETY: the guard is gone after this; the word goes back to the one owner.
                let owner = unsafe { ManuallyDrop::take(&mut self.owner) };
                *self.home = owner.into_thin().map_addr(|addr| addr | TAG_THIRD);
            }
        }
        // SAFETY: with tag 2 the home owns a `C`; the guard puts it back even if `change` panics.
        let owner = ManuallyDrop::new(unsafe { C::from_thin(untagged(*self.home)) });
        let mut guard = PutBack { owner, home: self.home };
        change(&mut guard.owner)
    }
}

#[inline]
fn untagged(raw: NonNull<u8>) -> NonNull<u8> {
    let plain = raw.as_ptr().map_addr(|addr| addr & !TAG_MASK);
    // SAFETY: the pointer was not null before its tag was added, and the tag bits were zero.
    unsafe { NonNull::new_unchecked(plain) }
}

const TAG_MASK: usize = 3;
const TAG_THIN: usize = 0;
const TAG_BOXED: usize = 1;
const TAG_THIRD: usize = 2;
