class JobApplication < ApplicationRecord
  belongs_to :job
  belongs_to :user

  validates :cover_letter, presence: true

  def as_answer
    slice(:id, :cover_letter, :cv_name, :cv_size, :job_id, :user_id)
  end
end
