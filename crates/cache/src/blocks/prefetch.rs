//! Telling the processor what will be read soon.

/// Has the processor begin to bring a place into its cache. A hint only: nothing where there is no such instruction.
#[inline]
#[allow(unsafe_code)] // The one thing for which there is no safe form.
pub(crate) fn prefetch<T>(place: &T) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: the instruction neither reads nor writes memory as the program sees it, and never faults.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(place).cast()) }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = place;
}
